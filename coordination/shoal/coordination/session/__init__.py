"""One ZooKeeper session for an event loop, and the proof that it is alive.

Start with ``session``. ``wire`` is the only module that touches kazoo.
"""
