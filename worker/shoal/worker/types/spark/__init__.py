"""SPARK: an application that ``spark-submit`` runs to its end.

``kind`` is what a task may say, ``command`` what becomes of it on the worker, ``submit`` the work
in the process of an attempt, ``event_log`` how far the application is. Start with ``kind``.
"""
