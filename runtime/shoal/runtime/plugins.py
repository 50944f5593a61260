"""Plug-ins that are installed here, found by entry points and imported when needed.

Task types and channels of alerts; the built-in ones are found the same way. ``source_kinds`` finds
kinds of data sources.
"""

from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from pydantic import BaseModel

from shoal.core.alerts.channels import Channel, UnknownChannel
from shoal.core.checks.workflow import check_workflow
from shoal.core.definition.environments import NO_ENVIRONMENT
from shoal.core.definition.model import TaskSpec, WorkflowSpec
from shoal.core.task_types import TaskKind, TaskParams, UnknownTaskType
from shoal.runtime import plugin_packages

ENTRY_POINT_GROUP = "shoal.task_types"
CHANNELS = "shoal.alert_channels"


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    return plugin_packages.installed(group)


def forget() -> None:
    """Forget which plug-ins were found, so that packages installed since then are found too."""
    for found in (_installed, load_task_type, load_channel):
        found.cache_clear()


def task_type_names() -> list[str]:
    """Names of all installed task types, sorted."""
    return sorted(_installed(ENTRY_POINT_GROUP))


@cache
def load_task_type(name: str) -> type[TaskKind[Any]]:
    """Import one installed task type; the others stay unimported.

    Raises UnknownTaskType, and UnusablePlugin if its package is broken.
    """
    point = _installed(ENTRY_POINT_GROUP).get(name)
    if point is None:
        raise UnknownTaskType(name, task_type_names())
    found: type[TaskKind[Any]] = plugin_packages.load(
        point, TaskKind, f"task type {name!r}", {"Params": TaskParams}
    )
    return found


def channel_kinds() -> list[str]:
    """Names of all installed kinds of channels for alerts, sorted."""
    return sorted(_installed(CHANNELS))


@cache
def load_channel(kind: str) -> type[Channel[Any]]:
    """Import one kind of channel.

    Raises UnknownChannel, and UnusablePlugin if its package is broken.
    """
    point = _installed(CHANNELS).get(kind)
    if point is None:
        raise UnknownChannel(kind, channel_kinds())
    found: type[Channel[Any]] = plugin_packages.load(
        point, Channel, f"kind of channel {kind!r}", {"Options": BaseModel}
    )
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
