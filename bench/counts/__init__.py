"""What a task costs in requests, statements and calls: counts are the same on every machine."""
