"""Commands about runs: start, show, follow, repair."""
