"""Resources of projects."""

from datetime import datetime

from pydantic import BaseModel, Field

from shoal.api.schemas.common import TIME, example


class ResourceOut(BaseModel):
    """A version of a file."""

    model_config = example(
        {
            "project": "flights",
            "path": "etl/clean.py",
            "version": 3,
            "size": 1840,
            "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "created_at": TIME,
            "ended_at": None,
            "instance_id": None,
        }
    )

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


class DeletedOut(BaseModel):
    """What was deleted."""

    model_config = example({"files": 3})

    files: int
