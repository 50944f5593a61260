"""Execute statements on SQLite and PostgreSQL, and tell slow from silent and from gone.

Start with ``connection``. SQLAlchemy translates; the drivers are called directly.
"""
