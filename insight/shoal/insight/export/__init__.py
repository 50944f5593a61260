"""The export: what has ended leaves the database for Parquet files, each row once.

``exporter`` makes one export after the other, ``gathering`` reads the database, ``columns`` turns
rows into Arrow tables, ``verifying`` says which files are read back and what follows if one is not
whole, ``compaction`` joins small files, ``program`` is what a master starts.
"""
