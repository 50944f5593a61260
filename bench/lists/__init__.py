"""What a page of a list costs with a million instances. ``python -m bench.lists``."""
