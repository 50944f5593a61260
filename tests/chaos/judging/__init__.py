"""What the checker finds: evidence from outside Shoal, and a module of rules for each subject.

Start with ``checker``.
"""
