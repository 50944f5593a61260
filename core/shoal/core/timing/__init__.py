"""Lengths of time, wall clocks, and the time of the cluster.

Leaves: they import nothing but ``shoal.core.errors``.
"""
