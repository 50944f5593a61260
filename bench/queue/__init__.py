"""The task queue with a million entries: puts, and claims by a crowd. ``python -m bench.queue``."""
