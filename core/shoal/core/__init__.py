"""What a workflow is and what happens next, as pure functions and plain values.

No IO, no clock, no chance: the caller gives the time. Start with ``definition.model`` (what people
write), ``runs.run`` (one instance) and ``decide`` (what an event leads to). The packages build on
one another in this order: ``timing``, ``macros`` and ``cron``; ``definition``; ``runs``; ``logic``;
``checks`` and ``schedule``; ``decide`` and ``backfill``.
"""
