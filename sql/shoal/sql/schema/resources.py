"""The versions of the files of projects. The files themselves lie in a storage."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table, UniqueConstraint, and_

from shoal.sql.schema.metadata import metadata, row_id
from shoal.sql.schema.types import OneLine, UtcDateTime

# A version of a file. It is an upload until ``version`` is there; it counts from ``created_at``
# until ``ended_at``: it has been replaced or deleted then. ``object``: its name in the storage.
# ``instance_id``: the run whose attempt makes it, which may have been purged; None: a person does.
resource = Table(
    "resource",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("path", OneLine(500), nullable=False),
    Column("object", OneLine(200), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("version", Integer),
    Column("sha256", OneLine(64)),
    Column("size", BigInteger),  # bytes
    Column("created_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("instance_id", BigInteger),
    UniqueConstraint("project_id", "path", "version"),
    sqlite_autoincrement=True,
)
IS_UPLOAD = resource.c.version.is_(None)
IS_CURRENT = and_(resource.c.version.is_not(None), resource.c.ended_at.is_(None))
Index(
    "ix_resource_current",
    resource.c.project_id,
    resource.c.path,
    unique=True,
    sqlite_where=IS_CURRENT,
    postgresql_where=IS_CURRENT,
)
Index("ix_resource_object", resource.c.object, unique=True)
IS_OF_RUN = resource.c.instance_id.is_not(None)
Index(
    "ix_resource_instance_id",
    resource.c.instance_id,
    sqlite_where=IS_OF_RUN,
    postgresql_where=IS_OF_RUN,
)
Index(
    "ix_resource_uploads",
    resource.c.started_at,
    sqlite_where=IS_UPLOAD,
    postgresql_where=IS_UPLOAD,
)
Index(
    "ix_resource_ended_at",
    resource.c.ended_at,
    sqlite_where=resource.c.ended_at.is_not(None),
    postgresql_where=resource.c.ended_at.is_not(None),
)
