"""Shoal's own use of ZooKeeper: its tree, its members, notifications, the cluster's clock.

The library (sessions, groups, recipes, messages, autoscale) does not import this package, nor
``queue``. Start with ``layout``.
"""
