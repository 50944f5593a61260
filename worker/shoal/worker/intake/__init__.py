"""How work comes to a worker: claimed, granted, kept ready for the next free slot.

Start with ``claims``; ``fetches`` asks masters what to run, ``reachability`` which of them answer.
"""
