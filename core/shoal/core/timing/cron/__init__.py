"""Cron expressions: Quartz and Unix, with time zones.

Start with ``expression``: ``Cron`` returns when it fires next. ``fields`` reads the text,
``pattern`` and ``days`` search the wall clock. Pure; knows nothing of schedules or workflows.
"""
