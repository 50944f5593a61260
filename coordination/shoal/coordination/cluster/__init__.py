"""Shoal's own tree in ZooKeeper: its layout, who is there, who owns which partition.

Start with ``layout`` and ``ownership``.
"""
