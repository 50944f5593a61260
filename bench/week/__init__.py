"""A week of production in minutes: memory and disk stay flat. ``python -m bench.week``."""
