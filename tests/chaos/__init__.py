"""The fault suite: a whole cluster under work and faults, judged by evidence of its own.

``python -m tests.chaos`` runs it (``make chaos``). The tasks write a ledger outside Shoal, and a
checker that shares no code with Shoal compares it with the database.
"""
