"""Kinds of data sources whose drivers have not met a server: Oracle, SQL Server, ClickHouse.

``kinds`` has the classes that the entry points name. ``oracle``, ``sqlserver`` and ``clickhouse``
are the drivers, each written to the interface of its library.
"""
