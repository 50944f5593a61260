"""What is asked about many runs, or about what a run would be or was."""
