"""Plug-ins that are installed here, found by entry points and imported when needed.

Task types and channels of alerts; the built-in ones are found the same way. ``source_kinds`` finds
kinds of data sources.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shoal.core.alerts.channels import Channel, UnknownChannel
from shoal.core.checks.workflow import check_workflow
from shoal.core.definition.environments import NO_ENVIRONMENT
from shoal.core.definition.model import TaskSpec, WorkflowSpec
from shoal.core.errors import ShoalError
from shoal.core.task_types import TaskKind, UnknownTaskType

ENTRY_POINT_GROUP = "shoal.task_types"
CHANNELS = "shoal.alert_channels"


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def forget() -> None:
    """Forget which plug-ins were found, so that packages installed since then are found too."""
    for found in (_installed, load_task_type, load_channel):
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
        raise ShoalError(f"the plugin for task type {name!r} is not a TaskKind: {found!r}")
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
        raise ShoalError(f"the plugin for channels of kind {kind!r} is not a Channel: {found!r}")
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
