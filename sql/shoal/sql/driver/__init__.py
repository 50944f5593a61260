"""Execute statements on SQLite and PostgreSQL, and distinguish slow from silent and gone.

Start with ``connection``. SQLAlchemy translates; the drivers are called directly.
"""
