"""When schedules fire: cron, validity and calendars together.

Start with ``fire_times``; ``preview`` explains them to people.
"""
