"""Connections to a SQLite file: the pool, the file, a thread for what takes long."""
