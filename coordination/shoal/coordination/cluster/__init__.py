"""Shoal's own tree in ZooKeeper: its layout, members, owners of partitions.

Start with ``layout`` and ``ownership``.
"""
