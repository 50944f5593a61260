"""What runs while faults are done: definitions, commands, and the ledger that tasks write.

Start with ``workload``.
"""
