"""One workflow for many dates: what is asked for, the plan, and the window that moves over it.

Start with ``request``, then ``plan`` (what runs, in which order) and ``window`` (what may
start now).
"""
