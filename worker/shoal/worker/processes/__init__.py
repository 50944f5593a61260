"""The agent's side of the supervisor: what to run, in which environment and folder, and its end.

Start with ``launcher``; ``helpers`` runs processes of the worker's own.
"""
