"""Who may do what

Revision: 0009, after 0008. Tables are added. Definitions that reach other projects go on doing so:
each such project gets a grant for the one that reaches it, as of now.
"""

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TIMESTAMP

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.BigInteger().with_variant(TIMESTAMP(timezone=True), "postgresql")


def upgrade() -> None:
    op.create_table(
        "principal",
        sa.Column("id", ID, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("name", sa.String(201), nullable=False),
        sa.Column("key", sa.String(201), nullable=False),
        sa.Column("full_name", sa.String(200), nullable=False),
        sa.Column("project_id", ID),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("password", sa.Text()),
        sa.Column("must_change_password", sa.Boolean(), nullable=False),
        sa.Column("issuer", sa.String(500)),
        sa.Column("subject", sa.String(255)),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("disabled_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_principal"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_principal_project_id_project"
        ),
        sa.UniqueConstraint("key", name="uq_principal_key"),
        sa.UniqueConstraint("issuer", "subject", name="uq_principal_issuer_subject"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_principal_project_id", "principal", ["project_id"])
    op.create_table(
        "principal_group",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("key", sa.String(100), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_principal_group"),
        sa.UniqueConstraint("key", name="uq_principal_group_key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "group_member",
        sa.Column("group_id", ID, nullable=False, autoincrement=False),
        sa.Column("principal_id", ID, nullable=False, autoincrement=False),
        sa.PrimaryKeyConstraint("group_id", "principal_id", name="pk_group_member"),
        sa.ForeignKeyConstraint(
            ["group_id"], ["principal_group.id"], name="fk_group_member_group_id_principal_group"
        ),
        _of_principal("group_member"),
    )
    op.create_index("ix_group_member_principal_id", "group_member", ["principal_id"])
    op.create_table(
        "project_role",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("principal_id", ID),
        sa.Column("group_id", ID),
        sa.Column("role", sa.String(20), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_project_role"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_project_role_project_id_project"
        ),
        _of_principal("project_role"),
        sa.ForeignKeyConstraint(
            ["group_id"], ["principal_group.id"], name="fk_project_role_group_id_principal_group"
        ),
        sa.UniqueConstraint(
            "project_id", "principal_id", name="uq_project_role_project_id_principal_id"
        ),
        sa.UniqueConstraint("project_id", "group_id", name="uq_project_role_project_id_group_id"),
        sa.CheckConstraint(
            "(principal_id IS NULL) <> (group_id IS NULL)", name=op.f("ck_project_role_one_holder")
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_project_role_principal_id", "project_role", ["principal_id"])
    op.create_index("ix_project_role_group_id", "project_role", ["group_id"])
    op.create_table(
        "login_session",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("principal_id", ID, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("used_at", INSTANT, nullable=False),
        sa.Column("expires_at", INSTANT, nullable=False),
        sa.Column("address", sa.String(100), nullable=False),
        sa.Column("agent", sa.String(200), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_login_session"),
        _of_principal("login_session"),
        sa.UniqueConstraint("digest", name="uq_login_session_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_login_session_principal_id", "login_session", ["principal_id"])
    op.create_index("ix_login_session_expires_at", "login_session", ["expires_at"])
    op.create_table(
        "api_token",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("principal_id", ID, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("permissions", sa.Text()),
        sa.Column("projects", sa.Text()),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("used_at", INSTANT),
        sa.Column("expires_at", INSTANT),
        sa.Column("revoked_at", INSTANT),
        sa.PrimaryKeyConstraint("id", name="pk_api_token"),
        _of_principal("api_token"),
        sa.UniqueConstraint("digest", name="uq_api_token_digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_api_token_principal_id", "api_token", ["principal_id"])
    op.create_table(
        "project_grant",
        sa.Column("project_id", ID, nullable=False, autoincrement=False),
        sa.Column("taker", sa.String(100), nullable=False),
        sa.Column("what", sa.String(20), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "taker", name="pk_project_grant"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_project_grant_project_id_project"
        ),
    )
    _grant_what_is_used()
    state = op.create_table(
        "access_state",
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_access_state"),
    )
    op.bulk_insert(state, [{"number": 1, "version": 1}])


def _grant_what_is_used() -> None:
    connection = op.get_bind()
    specs = connection.execute(
        sa.text(
            "SELECT p.name, v.spec, v.created_at FROM workflow w "
            "JOIN project p ON p.id = w.project_id "
            "JOIN workflow_version v ON v.workflow_id = w.id AND v.version = w.version "
            "WHERE w.deleted_at IS NULL"
        )
    ).all()
    wanted: dict[tuple[str, str], tuple[str, Any]] = {}
    for taker, spec, at in specs:
        for giver, what in _reaches(spec):
            if giver != taker and wanted.get((giver, taker), ("",))[0] != "run":
                wanted[giver, taker] = (what, at)
    for (giver, taker), (what, at) in wanted.items():
        connection.execute(
            sa.text(
                "INSERT INTO project_grant (project_id, taker, what, created_at) "
                "SELECT id, :taker, :what, :at FROM project WHERE name = :giver"
            ),
            {"giver": giver, "taker": taker, "what": what, "at": at},
        )


def _reaches(text: str) -> Iterator[tuple[str, str]]:
    """Yield the projects that a stored definition names; none if it cannot be read."""
    try:
        tasks = json.loads(text)["tasks"]
        found = [(task["type"], task.get("params") or {}) for task in tasks]
    except (ValueError, TypeError, KeyError, AttributeError):
        return
    for kind, params in found:
        if kind in ("SUB_WORKFLOW", "MAP") and isinstance(params.get("project"), str):
            yield params["project"], "run"
        if kind == "DEPENDENT":
            yield from ((name, "see") for name in _projects_in(params.get("when")))


def _projects_in(when: Any) -> Iterator[str]:
    if isinstance(when, list):
        for one in when:
            yield from _projects_in(one)
    elif isinstance(when, dict):
        if isinstance(when.get("project"), str):
            yield when["project"]
        for name in ("all", "any"):
            yield from _projects_in(when.get(name))


def _of_principal(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["principal_id"], ["principal.id"], name=f"fk_{table}_principal_id_principal"
    )


def downgrade() -> None:
    for table in (
        "access_state",
        "project_grant",
        "api_token",
        "login_session",
        "project_role",
        "group_member",
        "principal_group",
        "principal",
    ):
        op.drop_table(table)
