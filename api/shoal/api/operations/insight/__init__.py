"""Reading results of the jobs over the history: kept by day, and baselines by workflow."""
