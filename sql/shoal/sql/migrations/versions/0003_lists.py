"""Indices in the order of lists of instances, newest first, for every filter

Revision: 0003, after 0002. As many indices as before.
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_TABLE = "workflow_instance"
_NEWEST = ["created_at", "id"]
_NEW = (
    _NEWEST,
    ["state", *_NEWEST],
    ["workflow_id", "state", *_NEWEST],
    ["project_id", "state", *_NEWEST],
)
_OLD = (["created_at"], ["state", "id"], ["workflow_id", "id"], ["project_id", "id"])


def _replace(old: tuple[list[str], ...], new: tuple[list[str], ...]) -> None:
    for columns in old:
        op.drop_index(_name(columns), table_name=_TABLE)
    for columns in new:
        op.create_index(_name(columns), _TABLE, columns)


def _name(columns: list[str]) -> str:
    return f"ix_{_TABLE}_{'_'.join(columns)}"


def upgrade() -> None:
    _replace(_OLD, _NEW)


def downgrade() -> None:
    _replace(_NEW, _OLD)
