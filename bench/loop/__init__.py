"""What holds the event loops, and for how long. ``python -m bench.loop``."""
