"""What the API makes of results of jobs over the history."""
