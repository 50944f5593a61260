"""Processes, sessions and a ZooKeeper in one thread and in virtual time, for any seed.

``world`` has the clock and the event loops of the processes, ``zookeeper`` the server and what
stands between a ``ZkSession`` and it. Everything above the connection is the library's own code.
"""
