"""The environment of a task's program, as its payload holds it.

It is looked up when the task is fetched, and is as it is then: published long ago, a definition may
name one that is gone by now, or for other worker groups.
"""

from collections.abc import Iterable

from shoal.core.definition.environments import allows
from shoal.core.errors import ShoalError
from shoal.core.hints import Hints
from shoal.core.runs.run import Attempt, Run
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.plugins import environment_named
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound


class UnknownEnvironment(ShoalError):
    """A task is to run in an environment that does not exist."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        hint = Hints().of(name, known) or ";"
        super().__init__(
            f"there is no environment {name}{hint} make it with `shoal environment set {name}`, or "
            "publish the workflow without it"
        )


class EnvironmentNotAllowed(ShoalError):
    """A task is to run in an environment that is for other worker groups."""

    def __init__(self, name: str, group: str, groups: Iterable[str]) -> None:
        self.name, self.group, groups = name, group, tuple(groups)
        options = " ".join(f"--group {one}" for one in (*groups, group))
        super().__init__(
            f"the environment {name} is for the worker groups {', '.join(groups)}, the task is for "
            f"{group}; publish the workflow with another one, or let an administrator allow it: "
            f"`shoal environment set {name} {options}`"
        )


def wanted_environment(run: Run, attempt: Attempt) -> str | None:
    """Return the name of the environment that an attempt is to run in; None: in none."""
    return environment_named(run.plan.spec, run.plan.tasks[attempt.task])


async def environment_of(uow: UnitOfWork, run: Run, attempt: Attempt, name: str) -> pb.Environment:
    """Return the environment of this name for an attempt.

    One that the project may not use is as one that there is not. Raises UnknownEnvironment,
    EnvironmentNotAllowed, UnreadableRow.
    """
    group, project = run.plan.tasks[attempt.task].worker_group, run.plan.spec.project
    try:
        found = await uow.environments.get_for(project, name)
    except NotFound:
        known = await uow.environments.names_for(project)
        raise UnknownEnvironment(name, known) from None
    if not allows(found.spec.worker_groups, group):
        raise EnvironmentNotAllowed(name, group, found.spec.worker_groups)
    return pb.Environment(
        name=found.name,
        version=found.version,
        variables=found.spec.variables,
        python=found.spec.python,
        setup=found.spec.setup,
    )
