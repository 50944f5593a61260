"""What loading results of jobs takes of the database, and what others wait beside it."""
