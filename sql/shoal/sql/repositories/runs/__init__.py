"""Commands, instances, attempts, events, and who may start."""
