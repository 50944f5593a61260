"""A simulator: what a cluster would do over some days, hour by hour, before it does it.

It plays the timetables and the decisions of the core, the same functions that masters call, over a
clock of its own, and draws how long tasks take from what they took before. Start reading at
``model``, which is what is simulated, then ``engine/cluster.py``, which does it. ``changes`` are
what one may ask about, ``result`` what comes out, ``bottleneck`` where it gets narrow first,
``validation`` how far it is from a recorded day, ``chart`` a page to look at. docs/simulate.md has
what is left out.
"""
