"""Events in, decisions stored, actions out.

Start with ``engine``; ``shoal.core.decide`` decides, ``action_queue`` and ``perform`` carry out
what was stored.
"""
