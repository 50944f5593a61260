"""What is usual for workflows, and what that makes of their open runs."""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from shoal.api.operations.runs.timeline import critical_path
from shoal.api.web.answers import shown
from shoal.core.insight import expectation
from shoal.core.insight.baselines import Baselines
from shoal.core.insight.comparison import RunComparison, compare
from shoal.core.insight.expectation import ExpectedRun
from shoal.core.runs.records import Instance, TaskInstance
from shoal.core.runs.states import FINISHED_WORKFLOW
from shoal.sql import UnitOfWork
from shoal.sql.repositories.insight.rollups import RollupBlock

Name = tuple[str, str]  # project and workflow

MOST_KEPT = 100_000  # baselines; some 500 bytes each


class BaselineCache:
    """The newest baselines of workflows that were asked for. One per process.

    Those of one batch of runs are read together, in one statement; what was read stays until there
    are newer ones.
    """

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._version: tuple[date, str] | None = None
        self._count = 0
        self._kept: OrderedDict[Name, Baselines] = OrderedDict()

    async def of(
        self, uow: UnitOfWork, names: Collection[Name]
    ) -> tuple[date | None, Mapping[Name, Baselines]]:
        """Return as of which day they are (None: there are none), and those of the workflows."""
        newest = await uow.rollups.newest("baselines")
        if newest is None:
            return None, {}
        version = (newest.day, newest.digest)
        if version != self._version:
            self._version, self._count = version, 0
            self._kept.clear()
        wanted = set(names)
        found = {name: self._kept[name] for name in wanted & self._kept.keys()}
        for name in found:
            self._kept.move_to_end(name)
        if missing := wanted - found.keys():
            blocks = await uow.rollups.of_workflows("baselines", newest.day, missing)
            read = dict(shown("roll-up", blocks, _read, lambda block: block.workflow))
            for name in missing:
                found[name] = read.get(name, _NONE)
                self._keep(version, name, found[name])
        return newest.day, found

    def _keep(self, version: tuple[date, str], name: Name, some: Baselines) -> None:
        if version != self._version or name in self._kept:  # another request was quicker
            return
        self._kept[name] = some
        self._count += len(some) + 1
        while self._count > self._most and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._count -= len(oldest) + 1


def _read(block: RollupBlock) -> tuple[Name, Baselines]:
    return (block.project, block.workflow), Baselines(block.rows)


_NONE = Baselines()


async def expected_of(
    uow: UnitOfWork, cache: BaselineCache, runs: Iterable[Instance], now: datetime
) -> dict[int, ExpectedRun]:
    """Return what is expected of those runs that are open, by the runs before them.

    Where none is open, nothing is asked for.
    """
    open_ = [one for one in runs if _is_open(one)]
    if not open_:
        return {}
    _, found = await cache.of(uow, {(one.project, one.workflow) for one in open_})
    return {
        one.id: expectation.of_run(one, found.get((one.project, one.workflow), _NONE), now)
        for one in open_
    }


async def expected_by_tasks(
    uow: UnitOfWork,
    cache: BaselineCache,
    run: Instance,
    upstream: Mapping[str, Sequence[str]],
    newest: Mapping[str, TaskInstance],
    now: datetime,
) -> ExpectedRun:
    """Return what is expected of a run, by its open tasks if possible."""
    if not _is_open(run):
        return expectation.NOTHING
    name = (run.project, run.workflow)
    _, found = await cache.of(uow, {name})
    return expectation.of_tasks(run, upstream, newest, found.get(name, _NONE), now)


def _is_open(run: Instance) -> bool:
    return run.state not in FINISHED_WORKFLOW and run.started_at is not None


@dataclass(frozen=True)
class Against:
    """A run against what is usual for it. ``of``: as of which day that is; None: nothing is."""

    run: Instance
    of: date | None
    comparison: RunComparison
    expected: ExpectedRun


async def against_usual(
    uow: UnitOfWork, cache: BaselineCache, instance_id: int, now: datetime
) -> Against:
    """Compare a run with what is usual for it. Raises NotFound."""
    run = await uow.instances.get(instance_id)
    version = await uow.workflows.version(run.workflow_id, run.version)
    upstream = {task.name: task.depends_on for task in version.spec.tasks}
    tasks = await uow.tasks.of_instance(instance_id)
    newest = {task.task: task for task in tasks}
    name = (run.project, run.workflow)
    of, found = await cache.of(uow, {name})
    usual = found.get(name, _NONE)
    path = critical_path(upstream, newest)
    comparison = compare(run, tasks, path, usual, now)
    coming = expectation.NOTHING
    if _is_open(run):
        coming = expectation.of_tasks(run, upstream, newest, usual, now)
    return Against(run, of, comparison, coming)
