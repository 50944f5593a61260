"""The other sides of tasks: what runs there for which case, seen without Shoal.

Start with ``side``.
"""
