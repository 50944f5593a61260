"""Hadoop's own client, for task types whose work runs in YARN.

``client`` is its command line and its settings for one attempt; ``yarn`` finds and ends what an
attempt has left in a cluster.
"""
