"""The process that owns all task processes, and what watches over it.

Runs beside the agent, started by path without site packages, so it imports the standard library
alone. Start with ``launcher``; ``watchdog`` kills what it leaves if it dies.
"""
