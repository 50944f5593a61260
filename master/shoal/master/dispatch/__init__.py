"""What masters and workers say to each other about attempts.

Start with ``rpc``. ``payloads`` makes what a worker gets for a task, and ``revocation`` asks
workers before an attempt is LOST.
"""
