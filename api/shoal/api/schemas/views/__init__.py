"""What pages show that are about many runs: grids, calendars, what happens today."""
