"""``shoal insight``: what run history tells."""
