"""What a master does for its partitions besides deciding: commands, schedules, backfills, purges …

``service`` has the contract: a service runs until it is cancelled, is woken by what ``Listener``
passes on and by a regular poll, and goes through the engine or through fenced transactions of its
own. Start with ``service``, then ``commands``. ``upkeep`` runs as periodic jobs.
"""
