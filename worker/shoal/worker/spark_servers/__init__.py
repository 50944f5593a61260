"""Spark Connect servers that a worker keeps for its tasks: one for each project, when asked for.

Start reading in ``servers``: ``SparkServers`` is what the worker has. A ``server.SparkServer`` is
one of them, a JVM below the launcher like the processes of attempts, so that it ends with the
worker; ``command`` says how it is started. May be imported by ``execution`` and the assembly.
"""
