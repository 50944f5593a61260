"""Databases that the tests have no server of: Oracle, SQL Server, Trino.

Each module is written to its driver's interface and tested against a recording of that, not against
a server. ``session`` is what they share: a session over any driver of Python's database API. Start
reading in ``trino``.
"""
