"""What is asked about many runs at once, and what is seen of runs beside themselves."""
