"""The cluster that faults are done to: its roles, servers, hosts and links, on one machine.

Start with ``cluster``.
"""
