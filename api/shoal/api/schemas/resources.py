"""Resources of projects."""

from datetime import datetime

from pydantic import Field

from shoal.api.schemas.common import Answer


class ResourceOut(Answer):
    """A version of a file."""

    project: str
    path: str
    version: int
    size: int = Field(description="Bytes.")
    sha256: str = Field(description="Checksum of the content, in hexadecimal.")
    created_at: datetime
    ended_at: datetime | None = Field(
        description="Since when it has been replaced or deleted; null: it is the newest version."
    )
    instance_id: int | None = Field(
        description="The workflow instance whose task has made it; null: it was uploaded."
    )


class DeletedOut(Answer):
    """What was deleted."""

    files: int
