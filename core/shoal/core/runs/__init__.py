"""One workflow instance: its states, commands, events, records and scopes, as plain values.

Start with ``run`` (the instance in memory) and ``states`` (the tables of its transitions). What
happens next is decided in ``shoal.core.decide``.
"""
