"""Run a granted attempt: folder, task type, process.

Start with ``runner``; ``launching`` is the agent's side of the supervisor.
"""
