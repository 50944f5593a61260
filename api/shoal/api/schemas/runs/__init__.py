"""What is asked about runs and their tasks, and what is answered.

Start with ``instances``.
"""
