"""The environment that a workflow names, on this worker: its variables and its interpreter.

The order, the later ones winning: the worker's own variables, those of the environment, what
follows from its ``python``, the parameters of the task, Shoal's own. What the environment's setup
exports comes last of all.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shoal.core.definition.environments import label
from shoal.core.errors import ShoalError
from shoal.proto import shoal_pb2 as pb

_VIRTUAL = "pyvenv.cfg"  # the file that makes a folder a virtual environment


class EnvironmentUnusable(ShoalError):
    """A worker cannot give a task its environment."""

    def __init__(self, name: str, group: str, problem: str) -> None:
        self.name, self.group = name, group
        super().__init__(f"environment {name}: {problem} (worker group {group})")


@dataclass(frozen=True)
class Named:
    """An environment that can be used here. Empty texts: it has none of it.

    ``python`` is the path of an interpreter. ``variables`` are all that it adds, PATH included.
    """

    label: str = ""  # NAME@VERSION
    python: str = ""
    setup: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()  # variables of the worker that do not apply in it


def named_environment(payload: pb.Payload, base: Mapping[str, str], group: str) -> Named:
    """Return what the payload's environment is here; an empty one if it has none. Blocks.

    ``base``: the variables that a task takes over from the worker, whose group is ``group``.
    Raises EnvironmentUnusable.
    """
    if not payload.HasField("environment"):
        return Named()
    given = payload.environment
    variables = dict(given.variables)
    python, without = "", frozenset[str]()
    if given.python:
        interpreter = _interpreter(given, group)
        python, folder = str(interpreter), interpreter.parent
        path = variables.get("PATH", base["PATH"])
        variables["PATH"] = os.pathsep.join(filter(None, [str(folder), path]))
        # Spark's drivers are Python, too; executors elsewhere have an interpreter of their own.
        variables.setdefault("PYSPARK_DRIVER_PYTHON", python)
        if (folder.parent / _VIRTUAL).is_file():
            variables["VIRTUAL_ENV"] = str(folder.parent)
        else:
            without = frozenset({"VIRTUAL_ENV"})  # the worker's is another Python's
    return Named(environment_of(payload), python, given.setup, variables, without)


def environment_of(payload: pb.Payload) -> str:
    """Return the payload's environment as NAME@VERSION; empty: it has none."""
    if not payload.HasField("environment"):
        return ""
    return label(payload.environment.name, payload.environment.version)


def _interpreter(given: pb.Environment, group: str) -> Path:
    """Return the interpreter that a path names; links are not followed: they make it virtual."""
    path = Path(given.python)
    found = path / "bin" / "python" if path.is_dir() else path
    if os.access(found, os.X_OK) and found.is_file():
        return found
    there = os.path.lexists(found)
    raise EnvironmentUnusable(
        given.name,
        group,
        f"{found} cannot be run on this worker"
        if there
        else f"this worker has no {found}; make "
        "it on all workers of the group, or name another one with "
        f"`shoal environment set {given.name} --python PATH`",
    )
