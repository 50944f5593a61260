"""Secrets that are kept in other stores

Revision: 0017, after 0016. A secret may be a reference; what is encrypted stays as it is.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("secret", sa.Column("reference", sa.Text()))


def downgrade() -> None:
    op.execute(sa.text("DELETE FROM secret WHERE reference IS NOT NULL"))  # nothing could read them
    op.drop_column("secret", "reference")
