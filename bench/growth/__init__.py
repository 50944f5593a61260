"""Whether a task costs more the more there is beside it. ``python -m bench.growth``."""
