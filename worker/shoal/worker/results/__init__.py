"""How results leave a worker: stored, reported, repeated until a master has them.

Start with ``results``; ``spool`` keeps what no master has committed yet.
"""
