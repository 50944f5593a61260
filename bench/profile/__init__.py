"""Where the processor time of a task goes. ``python -m bench.profile``."""
