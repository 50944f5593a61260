"""Run a granted attempt: folder, task type, process.

Start with ``runner``; ``context`` is what a task type sees of its attempt.
"""
