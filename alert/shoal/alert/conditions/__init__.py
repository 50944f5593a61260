"""Conditions that rules watch: of ``workflows``, and of the ``cluster``; ``watcher`` is the job."""
