"""Tests on a real HDFS and YARN, for ``make test-hadoop``: Maven fetches them, 114 MB.

They run in a network namespace of their own, since Hadoop opens ports to all addresses.
"""
