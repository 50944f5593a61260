"""Alerts: what people want to be notified of, when, and how often. Pure.

A rule (``rules.py``) picks out of what happens (``occurrences.py``, read from events) what its
receivers (``receivers.py``) are notified of. ``rules.py`` decides, and says why not. ``times.py``
has quiet hours, rotations and the times of further tries.
"""
