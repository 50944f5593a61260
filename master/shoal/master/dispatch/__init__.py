"""What masters and workers say to each other about attempts.

Start with ``rpc``; ``eager_dispatch`` grants what stands behind a task with the answer to its
report, ``revoking`` asks workers before an attempt is LOST.
"""
