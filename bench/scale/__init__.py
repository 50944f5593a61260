"""A model of large clusters, from costs measured on small ones. ``python -m bench.scale``."""
