"""What run history tells: `shoal insight`."""
