"""What a master does for its partitions besides deciding: commands, schedules, backfills, purges …

Each service is woken by a notification or its own timer, and goes through the engine. Start with
``scan``.
"""
