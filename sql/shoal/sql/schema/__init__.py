"""The tables, the types of their columns, and how an old database gets them.

Start with ``tables``. The revisions stand in ``shoal.sql.migrations``.
"""
