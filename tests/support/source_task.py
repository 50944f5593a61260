"""A task type whose params name data sources, installed for the time of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from typing import Annotated

from shoal.core.task_types import (
    Exit,
    Script,
    SourceName,
    TaskContext,
    TaskParams,
    TaskType,
)
from shoal.runtime import plugins

NAME = "READS"


class ReadsParams(TaskParams):
    """Names of data sources in several places."""

    source: Annotated[str, SourceName()] = ""
    databases: list[Annotated[str, SourceName(frozenset({"postgresql"}))]] = []
    note: str = ""
    script: Script = ""


class Reads(TaskType[ReadsParams]):
    """Does nothing: what it would be given is what matters."""

    Params = ReadsParams

    async def run(self, context: TaskContext, params: ReadsParams) -> Exit:
        """Succeed."""
        return Exit(0)


@contextmanager
def installed() -> Iterator[None]:
    """Let the type be installed beside the others, in this process."""
    known = plugins._installed(plugins.ENTRY_POINT_GROUP)
    point = EntryPoint(NAME, f"{__name__}:Reads", plugins.ENTRY_POINT_GROUP)
    known[NAME] = point
    try:
        yield
    finally:
        del known[NAME]
        plugins.load_task_type.cache_clear()
