"""structlog without rich, which it takes along where that is installed.

That would be 6 MB and 0.1 s in each process of a cluster, for coloured tracebacks that nobody
sees. Import this before anything that imports structlog.
"""

from shoal.client.absent import absent

with absent("rich"):
    import structlog as structlog
