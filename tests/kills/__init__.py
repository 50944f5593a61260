"""Kills around a submission: ``kill -9`` of what runs a task, at a seeded moment, type by type.

``python -m tests.kills`` runs it (``make kills``). Observers outside Shoal look at the other side
of each task all the time, a judge says whether two jobs of one task were ever alive together and
whether one was forgotten. Start with ``plan``, then ``conduct``.
"""
