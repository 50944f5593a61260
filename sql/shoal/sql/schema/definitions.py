"""What projects hold: workflows and their schedules, and what these use by name."""

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, Table, UniqueConstraint

from shoal.core.definition.fields import LONGEST_OWNER
from shoal.sql.schema.metadata import metadata, row_id
from shoal.sql.schema.types import Json, OneLine, Prose, UtcDateTime

project = Table(
    "project",
    metadata,
    row_id(),
    Column("name", OneLine(100), nullable=False, unique=True),
    Column("description", Prose, nullable=False),
    Column("parameters", Json(dict), nullable=False, server_default="{}"),  # the outermost of all
    Column("created_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

# What a project's workflows share, each by its name. With a ``reference`` the secret is kept in
# another store, and ``ciphertext`` is empty.
secret = Table(
    "secret",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", OneLine(100), nullable=False),
    Column("ciphertext", Prose, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("reference", Prose),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)

# Of ``password`` and ``password_secret`` at most one is there: a ciphertext, or the name of a
# secret of the same project.
data_source = Table(
    "data_source",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", OneLine(100), nullable=False),
    Column("kind", OneLine(20), nullable=False),
    Column("host", Prose, nullable=False),
    Column("port", Integer),
    Column("database", Prose, nullable=False),
    Column("user_name", Prose, nullable=False),
    Column("options", Json(dict), nullable=False),
    Column("shared_with", Json(list, texts=True), nullable=False),  # names of projects, or "*"
    Column("password", Prose),
    Column("password_secret", OneLine(100)),
    Column("version", Integer, nullable=False),  # grows with each change
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)

# Of the cluster, not of a project. ``worker_groups``: whose workers have it; none: all.
environment = Table(
    "environment",
    metadata,
    row_id(),
    Column("name", OneLine(100), nullable=False, unique=True),
    Column("description", Prose, nullable=False),
    Column("variables", Json(dict, texts=True), nullable=False),
    Column("python", Prose, nullable=False),
    Column("setup", Prose, nullable=False),
    Column("worker_groups", Json(list, texts=True), nullable=False),
    Column("version", Integer, nullable=False),  # grows with each change
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    sqlite_autoincrement=True,
)

calendar = Table(
    "calendar",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", OneLine(100), nullable=False),
    Column("description", Prose, nullable=False),
    Column(
        "days", Json(list, texts=True), nullable=False
    ),  # YYYY-MM-DD, ascending: days without fire times
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)

concurrency_group = Table(
    "concurrency_group",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", OneLine(100), nullable=False),
    Column("description", Prose, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)

# What lists show of the newest version is repeated here: they need nothing else.
workflow = Table(
    "workflow",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", OneLine(100), nullable=False),
    Column("description", Prose, nullable=False),
    Column("owner", OneLine(LONGEST_OWNER), nullable=False, server_default=""),
    Column("labels", Json(dict, texts=True), nullable=False, server_default="{}"),
    Column("version", Integer, nullable=False),  # 0 only inside the transaction that creates it
    Column("digest", OneLine(64), nullable=False),
    Column("tasks", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("archived_at", UtcDateTime),  # nothing starts, by schedule or otherwise
    Column("deleted_at", UtcDateTime),
    UniqueConstraint("project_id", "name"),
    sqlite_autoincrement=True,
)

workflow_version = Table(
    "workflow_version",
    metadata,
    Column("workflow_id", ForeignKey("workflow.id"), primary_key=True, autoincrement=False),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("spec", Json(dict), nullable=False),
    Column("digest", OneLine(64), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("source", Prose),  # the YAML that it was published from, if it was
    Column("published_by", OneLine(201)),  # NULL: before it was noted
)

# Where people have put the tasks on the canvas: beside the versions, never one.
workflow_layout = Table(
    "workflow_layout",
    metadata,
    Column("workflow_id", ForeignKey("workflow.id"), primary_key=True, autoincrement=False),
    Column("content", Json(dict), nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("updated_by", OneLine(201), nullable=False),
)

# Texts that are not published yet, as they were typed: never run, and perhaps not even YAML.
# ``base_version``: the newest when it was begun; 0: there was none. ``revision`` grows with each
# change. ``editor`` is the name of a principal, which is never given again.
draft = Table(
    "draft",
    metadata,
    row_id(),
    Column("project_id", ForeignKey("project.id"), nullable=False),
    Column("name", OneLine(100), nullable=False),
    Column("editor", OneLine(201), nullable=False),
    Column("text", Prose, nullable=False),
    Column("base_version", Integer, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("project_id", "name", "editor"),
    sqlite_autoincrement=True,
)

# ``next_fire_at`` is NULL while disabled, paused or archived, so one index serves everything that
# is due. ``paused_at``: by request, beside the definition; publishing leaves it as it is.
# ``expected_since``: from when on it has had to fire at the times that it has now.
schedule = Table(
    "schedule",
    metadata,
    row_id(),
    Column("workflow_id", ForeignKey("workflow.id"), nullable=False, index=True),
    Column("partition", Integer, nullable=False),
    Column("cron", OneLine(255), nullable=False),
    Column("timezone", OneLine(100), nullable=False),
    Column("parameters", Json(dict), nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("priority", Integer),
    Column("on_gap", OneLine(10)),
    Column("on_overlap", OneLine(10)),
    Column("starts_at", UtcDateTime),
    Column("ends_at", UtcDateTime),
    Column("exclude", Json(list, texts=True)),  # days, YYYY-MM-DD
    Column("calendar", OneLine(100)),
    Column("missed", OneLine(10), nullable=False, server_default="last"),
    Column("missed_window", Float),  # seconds
    Column("next_fire_at", UtcDateTime),
    Column("paused_at", UtcDateTime),
    Column("expected_since", UtcDateTime),
    sqlite_autoincrement=True,
)
Index(None, schedule.c.next_fire_at, schedule.c.partition)
