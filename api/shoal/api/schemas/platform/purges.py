"""Purges: history that is to go."""

from datetime import datetime

from pydantic import BaseModel, Field

from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.timing.instant import Instant


class PurgeIn(RequestBody):
    """What is to go; without anything, what the masters' rules say."""

    dry_run: bool = Field(default=False, description="Count, delete nothing.")
    before: Instant | None = Field(
        default=None,
        description="Finished instances, backfills and events from before. Default: as the "
        "settings keep_…_days of the masters say.",
    )
    even_if_not_exported: bool = Field(
        default=False,
        description="Also what the exported history does not have for certain yet, and will not "
        "have then. Without `history_url` nothing waits for it.",
    )
    project: str | None = Field(default=None, max_length=100, description="Only of this project.")
    workflow: str | None = Field(
        default=None, max_length=100, description="Only of this workflow of the project."
    )


class PurgeOut(Answer):
    """A purge and how far the masters have come with it."""

    id: int
    dry_run: bool
    before: datetime | None
    project: str | None
    workflow_id: int | None
    created_at: datetime
    finished_at: datetime | None = Field(description="null while masters are at it.")
    partitions: int
    partitions_done: int
    instances: int
    attempts: int
    events: int
    commands: int
    backfills: int
    oldest: datetime | None = Field(description="End of the oldest of these instances.")
    even_if_not_exported: bool = False
    held: int = Field(
        default=0,
        description="Instances, commands and events that stay only because the exported history "
        "does not have them for certain yet.",
    )
    held_because: str | None = Field(
        default=None, description="Up to when it has all, and what is wrong; null: none are held."
    )


class StoreOut(BaseModel):
    """How much one table holds. Both are the database's own estimates; null: not known."""

    name: str
    rows: int | None
    bytes: int | None


class StoresOut(Answer):
    """How large the history is."""

    kind: str
    bytes: int | None = Field(description="Of the whole database on its disk.")
    free_bytes: int | None = Field(
        description="Of that, free for what comes; null: the database does not tell."
    )
    stores: list[StoreOut]
