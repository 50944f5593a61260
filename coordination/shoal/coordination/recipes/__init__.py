"""Building blocks for any program: election, fences, fair shares, jobs.

The public names are those of ``shoal.coordination``; ``docs/coordination.md`` has a program for
each. Masters share their partitions by ``FairShare``.
"""
