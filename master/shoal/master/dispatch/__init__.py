"""What masters and workers say to each other about attempts.

Start with ``rpc``; ``hand_on`` grants what stands behind a task with the answer to its report,
``revoking`` asks workers before an attempt is LOST.
"""
