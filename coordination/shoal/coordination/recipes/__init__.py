"""Building blocks for any program: election, fences, fair shares, jobs.

The public names are those of ``shoal.coordination``; each has an example in
``examples/coordination``. Masters use them as well.
"""
