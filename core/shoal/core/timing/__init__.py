"""Lengths of time, wall clocks, cron expressions, and the time of the cluster.

They import nothing of the core but ``shoal.core.errors``.
"""
