"""What users write. API and command line import this module, so it imports nothing heavy."""

from pydantic import Field

from shoal.core.task_types import TaskParams
from shoal.worker.types.child.kind import ChildType


class ArchiveParams(TaskParams):
    """What is packed, and into which file. Both are on the worker."""

    folder: str = Field(pattern=r"^/", description="Absolute path of a folder.")
    file: str = Field(pattern=r"^/.*\.tar\.gz$", description="Absolute path of the new file.")
    level: int = Field(default=6, ge=1, le=9, description="1 is fast, 9 is small.")


class Archive(ChildType[ArchiveParams]):
    """Packs a folder, in a process of the attempt's own."""

    Params = ArchiveParams
    work = "archive.pack:pack"
