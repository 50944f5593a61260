"""The tables of who may do what: principals, groups, roles, sessions, tokens.

Of passwords, tokens and sessions only hashes are here.
"""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    UniqueConstraint,
    false,
)

from shoal.sql.schema.metadata import metadata, row_id
from shoal.sql.schema.types import Json, OneLine, Prose, UtcDateTime

# Users and service accounts. Rows stay: every action keeps its author. ``key`` is the
# name as it is compared. ``project_id``: of a service account. Who signs in at an OpenID provider
# or a directory has ``issuer`` and ``subject``, and no password.
principal = Table(
    "principal",
    metadata,
    row_id(),
    Column("kind", OneLine(20), nullable=False),
    Column("name", OneLine(201), nullable=False),  # of a service account PROJECT/NAME
    Column("key", OneLine(201), nullable=False, unique=True),
    Column("full_name", OneLine(200), nullable=False),
    Column("project_id", ForeignKey("project.id"), index=True),
    Column("is_admin", Boolean, nullable=False),
    Column("password", Prose),
    Column("must_change_password", Boolean, nullable=False),
    Column("issuer", OneLine(500)),
    Column("subject", OneLine(255)),
    Column("created_at", UtcDateTime, nullable=False),
    Column("disabled_at", UtcDateTime),
    UniqueConstraint("issuer", "subject"),
    sqlite_autoincrement=True,
)

principal_group = Table(
    "principal_group",
    metadata,
    row_id(),
    Column("name", OneLine(100), nullable=False),
    Column("key", OneLine(100), nullable=False, unique=True),
    Column("description", Prose, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

# ``of_issuer``: by the word of the provider or directory where the principal signs in; it goes when
# that no longer says so. Others were put in by hand.
group_member = Table(
    "group_member",
    metadata,
    Column("group_id", ForeignKey("principal_group.id"), primary_key=True, autoincrement=False),
    Column("principal_id", ForeignKey("principal.id"), primary_key=True, autoincrement=False),
    Column("of_issuer", Boolean, nullable=False, server_default=false()),
)
Index(None, group_member.c.principal_id)

# Exactly one of ``principal_id`` and ``group_id`` is there.
project_role = Table(
    "project_role",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("principal_id", ForeignKey("principal.id"), index=True),
    Column("group_id", ForeignKey("principal_group.id"), index=True),
    Column("role", OneLine(20), nullable=False),
    UniqueConstraint("project_id", "principal_id"),
    UniqueConstraint("project_id", "group_id"),
    CheckConstraint("(principal_id IS NULL) <> (group_id IS NULL)", name="one_holder"),
    sqlite_autoincrement=True,
)

# ``digest``: the SHA-256 of what the browser's cookie holds.
login_session = Table(
    "login_session",
    metadata,
    row_id(),
    Column("digest", OneLine(64), nullable=False, unique=True),
    Column("principal_id", ForeignKey("principal.id"), nullable=False, index=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("used_at", UtcDateTime, nullable=False),  # now and then, not with each request
    Column("expires_at", UtcDateTime, nullable=False, index=True),  # however much it is used
    Column("address", OneLine(100), nullable=False),
    Column("agent", OneLine(200), nullable=False),
    sqlite_autoincrement=True,
)

# Sign-ins at a provider that have come to their end: none does twice before it has expired.
# ``code``: the SHA-256 of what a command line can change into a session once, with what
# ``challenge`` was made of.
sign_in = Table(
    "sign_in",
    metadata,
    Column("digest", OneLine(64), primary_key=True),
    Column("principal_id", ForeignKey("principal.id"), nullable=False, index=True),
    Column("code", OneLine(64), unique=True),
    Column("challenge", OneLine(43)),
    Column("code_expires_at", UtcDateTime),
    Column("expires_at", UtcDateTime, nullable=False, index=True),
)

# ``permissions`` and ``projects`` (ids) limit it; NULL does not.
api_token = Table(
    "api_token",
    metadata,
    row_id(),
    Column("digest", OneLine(64), nullable=False, unique=True),
    Column("principal_id", ForeignKey("principal.id"), nullable=False, index=True),
    Column("name", OneLine(100), nullable=False),
    Column("permissions", Json(list, texts=True)),
    Column("projects", Json(list)),
    Column("created_at", UtcDateTime, nullable=False),
    Column("used_at", UtcDateTime),  # now and then
    Column("expires_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    sqlite_autoincrement=True,
)

# What ``project_id`` lets the tasks of another project do. ``taker``: that one's name, or "*".
project_grant = Table(
    "project_grant",
    metadata,
    Column("project_id", ForeignKey("project.id"), primary_key=True, autoincrement=False),
    Column("taker", OneLine(100), primary_key=True),
    Column("what", OneLine(20), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

# Which files of ``project_id`` the tasks of another project may use. ``taker``: that one's name, or
# "*". ``paths``: of files, of folders with a slash at the end, or "*".
resource_grant = Table(
    "resource_grant",
    metadata,
    Column("project_id", ForeignKey("project.id"), primary_key=True, autoincrement=False),
    Column("taker", OneLine(100), primary_key=True),
    Column("paths", Json(list, texts=True), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

# Which projects may use a worker group or an environment, by name; without a row every project may.
# ``projects``: names; without any, no project may.
restriction = Table(
    "restriction",
    metadata,
    Column("kind", OneLine(20), primary_key=True),
    Column("name", OneLine(100), primary_key=True),
    Column("projects", Json(list, texts=True), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

# One row, whose number is 1. ``version`` grows with every change of the tables above that takes
# rights away or gives them: every API process looks at it before it trusts what it remembers.
access_state = Table(
    "access_state",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)
