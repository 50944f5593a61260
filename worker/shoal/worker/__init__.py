"""The worker: claims tasks, runs them, reports what became of them, serves their logs.

Start with ``main`` and ``agent``. A task's way: ``intake`` claims and fetches it, ``execution``
runs it through the ``supervisor``, a process of its own, and ``results`` reports its end.
"""
