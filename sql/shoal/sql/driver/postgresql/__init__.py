"""Connections to PostgreSQL: the pool, one link, statements in a pipeline."""
