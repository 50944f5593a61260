"""Commands, instances, attempts, events, and which runs may start."""
