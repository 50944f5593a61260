"""How work comes to a worker, and how it is requeued before it has begun.

Start with ``claims``; ``fetching`` asks masters what to run, ``reachability`` which of them answer.
"""
