"""Alembic's entry point: runs the revisions on the connection that ``schema.migrate`` opened.

It leaves logging alone and neither begins nor commits: the caller owns the transaction.
"""

from alembic import context

from shoal.sql.schema import access, audit  # noqa: F401 - their tables belong to the metadata
from shoal.sql.schema.examination import VERSION_TABLE
from shoal.sql.schema.tables import metadata

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("run migrations through shoal.sql.Database.migrate()")
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
    compare_type=True,
)
context.run_migrations()
