"""The simulated cluster: one clock, the core's decisions, and pools of slots.

Start reading at ``cluster``, which holds the runs and passes events to ``decide``. ``agenda`` is
the clock, ``workflow`` what does not change while it runs, ``arrivals`` when runs start,
``outcomes`` how attempts end, ``pool`` slots and who waits for them, ``admission`` and
``dependencies`` what masters keep of runs that wait for other runs.
"""
