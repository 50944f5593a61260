"""What a worker keeps for tasks that use Spark.

- Spark Connect servers, one for each project, when asked for: ``servers.SparkServers`` is what the
  worker has, ``server.SparkServer`` one of them, ``jobs`` what it works on, ``command`` how it is
  started, ``access`` what an attempt has of it.
- An archive of Spark's classes, with which drivers and servers start faster: ``class_archiver``.

All are processes below the launcher, like those of attempts, so they end with the worker. May be
imported by ``execution`` and the assembly.
"""
