"""Events in, decisions stored, actions out.

Start with ``engine``; ``shoal.core.decide`` decides, ``outbox`` and ``perform`` carry out
what was stored.
"""
