"""The export: what has ended leaves the database for Parquet files, each row once.

``exporter`` makes one export after the other, ``gathering`` reads the database, ``columns`` turns
rows into Arrow tables, ``compaction`` joins small files, ``program`` is what a master starts.
"""
