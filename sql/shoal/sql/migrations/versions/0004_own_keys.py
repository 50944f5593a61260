"""Keys of Shoal's own commands, which callers' keys cannot meet

Revision: 0004, after 0003. Callers' keys stay as they are.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_OWN = "\x1f"
_COMMAND = sa.table("command", sa.column("idempotency_key"), sa.column("requested_by"))
_KEY = _COMMAND.c.idempotency_key
_IS_OWN = _COMMAND.c.requested_by.in_(["schedule", "overlap", "sub-workflow", "backfill"])


def upgrade() -> None:
    marked = sa.literal(_OWN, sa.String()) + _KEY
    op.execute(_COMMAND.update().where(_IS_OWN).values(idempotency_key=marked))


def downgrade() -> None:
    op.execute(_COMMAND.update().where(_IS_OWN).values(idempotency_key=sa.func.substr(_KEY, 2)))
