"""What run history tells: trends, failures, costs, load, and runs against what is usual.

Start with ``window``, which says what days an answer is about, then ``trends``.
"""
