"""What a backfill needs now: as little as possible is read, and the pure ``window`` decides."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from shoal.core.backfill.plan import followers_of
from shoal.core.backfill.request import (
    ENDED_BACKFILL,
    Backfill,
    BackfillRunState,
    BackfillState,
    Downstream,
)
from shoal.core.backfill.upstream import Upstream
from shoal.core.backfill.window import BackfillRun, DayOutcome, WindowStep, window
from shoal.core.runs.states import FINISHED_WORKFLOW, WorkflowState
from shoal.sql import UnitOfWork
from shoal.sql.backfill_plans import Scheduled, workflows_of

_S = BackfillRunState


@dataclass(frozen=True)
class BackfillNeeds:
    """A backfill as it is stored, and what is to be done."""

    backfill: Backfill
    runs: Sequence[BackfillRun]
    outcomes: Mapping[int, DayOutcome]
    workflows: Mapping[int, Scheduled]
    step: WindowStep

    @property
    def stops(self) -> list[BackfillRun]:
        """The runs whose instances are to be stopped."""
        if self.backfill.state is not BackfillState.CANCELLING:
            return []
        over = {WorkflowState.STOPPING, *FINISHED_WORKFLOW}
        return [
            run
            for run in self.runs
            if (outcome := self.outcomes.get(run.position)) is not None
            and outcome.instance is not None
            and outcome.instance not in over
        ]

    @property
    def has_work(self) -> bool:
        """Whether anything is to be stored."""
        return bool(self.step.changed or self.step.state or self.stops)


async def needs_of(uow: UnitOfWork, backfill: Backfill) -> BackfillNeeds | None:
    """Return what a backfill needs; None if it has ended."""
    if backfill.state in ENDED_BACKFILL:
        return None
    request = backfill.request
    counts = (await uow.backfills.counts([backfill.id]))[backfill.id]
    outcomes = await uow.backfills.outcomes(backfill.id, {_S.STARTED})
    workflows: dict[int, Scheduled] = {}
    if counts.get(_S.WAITING) and backfill.state is BackfillState.RUNNING:
        ids = {backfill.workflow_id}
        if request.downstream is not Downstream.NONE:
            ids = await uow.backfills.workflow_ids(backfill.id)
        workflows = await workflows_of(uow, request, backfill.workflow_id, ids)
    followers = followers_of(request, [one.target for one in workflows.values()])
    if any(one.needs for one in followers.values()):
        runs = await uow.backfills.runs(backfill.id)
    else:
        runs = await _first_runs(uow, backfill, counts, outcomes.values())
    step = window(
        backfill.state,
        runs,
        outcomes,
        parallel=request.parallel,
        stop_after=request.stop_after,
        waits_for=Upstream(runs, followers).of,
        unseen=Counter(counts) - Counter(run.state for run in runs),
    )
    return BackfillNeeds(backfill, runs, outcomes, workflows, step)


async def _first_runs(
    uow: UnitOfWork,
    backfill: Backfill,
    counts: Mapping[BackfillRunState, int],
    outcomes: Iterable[DayOutcome],
) -> list[BackfillRun]:
    """Return which are started and which may be next, of dates that do not depend on each other.

    There may be thousands. All that wait are needed only if they are to be given up.
    """
    failed = counts.get(_S.FAILED, 0)
    failed += sum(one.is_over and one.instance is not WorkflowState.SUCCEEDED for one in outcomes)
    limit: int | None = backfill.request.parallel
    stop_after = backfill.request.stop_after
    if backfill.state is BackfillState.CANCELLING or (stop_after and failed >= stop_after):
        limit = None
    started = await uow.backfills.runs(backfill.id, {_S.STARTED})
    waiting = await uow.backfills.runs(backfill.id, {_S.WAITING}, limit)
    return sorted([*started, *waiting], key=attrgetter("position"))
