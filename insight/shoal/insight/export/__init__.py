"""The export: what has ended leaves the database for Parquet files, each row once.

``exporter`` makes one export after the other. ``extraction`` reads the database, ``columns`` turns
rows into Arrow tables, ``damage`` finds files that are damaged or missing and exports their rows
again, ``compaction`` joins small files, ``program`` is what a master starts.
"""
