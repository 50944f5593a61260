"""One ZooKeeper session for an event loop, and the proof that it is alive.

Start with ``session``. Only ``client`` and ``wire`` touch kazoo.
"""
