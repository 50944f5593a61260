"""What pages show that are about many runs, put together from what is stored."""
