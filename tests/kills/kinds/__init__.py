"""The kinds of tasks that are killed: a definition for each, and how its effect is known.

Start with ``kind``, then ``catalogue``.
"""
