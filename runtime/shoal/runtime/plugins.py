"""Plug-ins that are installed here, found by entry points and imported when needed.

Task types, channels of alerts and kinds of data sources; the built-in ones are found the same way.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shoal.core.alerts.channels import Channel, UnknownChannel
from shoal.core.checks.workflow import check_workflow
from shoal.core.data_sources.kind import SourceKind, UnknownSourceKind
from shoal.core.definition.environments import NO_ENVIRONMENT
from shoal.core.definition.model import TaskSpec, WorkflowSpec
from shoal.core.errors import ShoalError
from shoal.core.task_types import TaskKind, UnknownTaskType

ENTRY_POINT_GROUP = "shoal.task_types"
CHANNELS = "shoal.alert_channels"
SOURCE_KINDS = "shoal.data_source_kinds"

#: Kinds of data sources that other packages of this project provide, and how to install them.
_ELSEWHERE = dict.fromkeys(
    ("clickhouse", "oracle", "sqlserver"), "pip install shoal-experimental-databases"
)


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def forget() -> None:
    """Forget which plug-ins were found, so that packages installed since then are found too."""
    for found in (_installed, load_task_type, load_channel, load_source_kind):
        found.cache_clear()


def task_type_names() -> list[str]:
    """Names of all installed task types, sorted."""
    return sorted(_installed(ENTRY_POINT_GROUP))


@cache
def load_task_type(name: str) -> type[TaskKind[Any]]:
    """Import one installed task type; the others stay unimported. Raises UnknownTaskType."""
    try:
        found = _installed(ENTRY_POINT_GROUP)[name].load()
    except KeyError:
        raise UnknownTaskType(name, task_type_names()) from None
    if not (isinstance(found, type) and issubclass(found, TaskKind)):
        raise ShoalError(f"the plugin for task type {name!r} is no TaskKind: {found!r}")
    return found


def channel_kinds() -> list[str]:
    """Names of all installed kinds of channels for alerts, sorted."""
    return sorted(_installed(CHANNELS))


@cache
def load_channel(kind: str) -> type[Channel[Any]]:
    """Import one kind of channel. Raises UnknownChannel."""
    try:
        found = _installed(CHANNELS)[kind].load()
    except KeyError:
        raise UnknownChannel(kind, channel_kinds()) from None
    if not (isinstance(found, type) and issubclass(found, Channel)):
        raise ShoalError(f"the plugin for channels of kind {kind!r} is no Channel: {found!r}")
    return found


def source_kinds() -> list[str]:
    """Names of all installed kinds of data sources, sorted."""
    return sorted(_installed(SOURCE_KINDS))


@cache
def load_source_kind(name: str) -> type[SourceKind]:
    """Import one kind of data source. Raises UnknownSourceKind."""
    try:
        found = _installed(SOURCE_KINDS)[name].load()
    except KeyError:
        raise UnknownSourceKind(name, source_kinds(), _ELSEWHERE.get(name, "")) from None
    if not (isinstance(found, type) and issubclass(found, SourceKind)):
        raise ShoalError(f"the plug-in for data sources of kind {name!r} is not a SourceKind")
    return found


def check_definition(raw: Any) -> WorkflowSpec:
    """Return the definition in ``raw``. Raises InvalidDefinition with the problems found."""
    return check_workflow(raw, load_task_type)


def environment_named(spec: WorkflowSpec, task: TaskSpec) -> str | None:
    """Return the name of the environment that a task's program runs in; None: it has none.

    The workflow's environment is for tasks of the types that start a program.
    """
    named = task.environment or spec.environment
    if named in (None, NO_ENVIRONMENT) or not load_task_type(task.type).uses_environment:
        return None
    return named
