"""The attempts that this worker holds a claim on, and the states that each goes through.

Start with ``lifecycle``; ``held`` has the attempts and their slots.
"""
