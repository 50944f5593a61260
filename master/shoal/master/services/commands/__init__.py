"""Commands of a master's partitions: starts become instances, requests become events.

Start with ``scanner``, which reads the table; ``starts`` and ``requests`` carry commands out, and
``outcomes`` stores what cannot be carried out.
"""
