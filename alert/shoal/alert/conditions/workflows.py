"""Conditions of workflows: deadlines, successes that do not come, how many runs succeed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from shoal.alert.jobs.catalog import Rule
from shoal.core.alerts.conditions import Deadline, DueCondition, WatchedRun, missed, silent
from shoal.core.alerts.occurrences import OF_WORKFLOWS, Trigger
from shoal.core.alerts.records import AlertCondition
from shoal.core.runs.filters import WorkflowFilter
from shoal.sql import UnitOfWork

_PAGE = 500
_LEARN_EVERY = timedelta(minutes=30)  # what is usual

_Learnt = tuple[str, Trigger, int]  # rule, trigger, workflow


@dataclass(frozen=True)
class Watched:
    """A workflow that ``rules`` are about."""

    project: str
    name: str
    id: int
    since: datetime
    rules: Sequence[Rule]

    @property
    def key(self) -> str:
        """What no other workflow has."""
        return f"{self.project}/{self.name}"


class WorkflowConditions:
    """Looks at the workflows that rules name. It keeps what it has learnt of their usual times."""

    def __init__(self) -> None:
        self._usual: dict[_Learnt, tuple[datetime, list[WatchedRun]]] = {}

    async def watched(
        self, uow: UnitOfWork, project: str, rules: Mapping[str, Rule]
    ) -> list["Watched"]:
        """Return the workflows of a project that rules are about, each with these rules."""
        watching = [one for one in rules.values() if one.watches(OF_WORKFLOWS)]
        if not watching:
            return []
        return [
            Watched(project, name, workflow_id, since, about)
            for name, workflow_id, since in await _workflows(uow, project)
            if (
                about := [
                    rule
                    for rule in watching
                    if any(fnmatchcase(name, pattern) for pattern in rule.spec.workflows)
                ]
            )
        ]

    async def look(self, uow: UnitOfWork, one: "Watched", now: datetime) -> list[AlertCondition]:
        """Return the conditions that hold of a workflow."""
        found = []
        for rule in one.rules:
            begun = max(one.since, rule.since)
            for trigger in rule.watches(OF_WORKFLOWS):
                problem = await self._problem(uow, rule, trigger, one.id, begun, now)
                if problem is not None:
                    about, reason = problem
                    subject = "/".join(filter(None, (trigger, one.name, rule.name, about)))
                    found.append(
                        AlertCondition(one.project, rule.name, subject, trigger, one.name, reason)
                    )
        return found

    async def _problem(
        self,
        uow: UnitOfWork,
        rule: Rule,
        trigger: Trigger,
        workflow_id: int,
        begun: datetime,
        now: datetime,
    ) -> tuple[str, str] | None:
        """Return what is not as it should be: of which day, if it has one, and the reason.

        ``begun``: when it began to be watched.
        """
        spec, runs = rule.spec, uow.punctuality
        match trigger:
            case Trigger.WORKFLOW_NO_SUCCESS if spec.no_success_for is not None:
                last = await runs.last_success(workflow_id)
                # Who has never succeeded has as long from the beginning on.
                if last is None and silent(begun, spec.no_success_for, now) is None:
                    return None
                reason = silent(last, spec.no_success_for, now)
                return None if reason is None else ("", reason)
            case Trigger.WORKFLOW_LOW_SUCCESS_RATE if spec.success_rate is not None:
                reason = spec.success_rate.problem(
                    await runs.outcomes(workflow_id, spec.success_rate.runs)
                )
                return None if reason is None else ("", reason)
            case _ if spec.deadline is not None:
                due = await self._due(uow, rule, spec.deadline, trigger, workflow_id, now)
                if due is None or due.at < begun:
                    return None
                if trigger is Trigger.WORKFLOW_NOT_STARTED:
                    is_there = await runs.has_begun(workflow_id, due.since)
                else:
                    is_there = await runs.has_succeeded(workflow_id, due.since)
                what = "begun" if trigger is Trigger.WORKFLOW_NOT_STARTED else "succeeded"
                if is_there:
                    return None
                return due.day.isoformat(), missed(due, what, spec.deadline.timezone)
            case _:
                return None

    async def _due(
        self,
        uow: UnitOfWork,
        rule: Rule,
        deadline: Deadline,
        trigger: Trigger,
        workflow_id: int,
        now: datetime,
    ) -> DueCondition | None:
        if deadline.percentile is None:
            return deadline.last(now, ())
        key = rule.name, trigger, workflow_id
        learnt = self._usual.get(key)
        if learnt is None or now >= learnt[0] + _LEARN_EVERY:
            read = uow.punctuality.begins if trigger is Trigger.WORKFLOW_NOT_STARTED else None
            past = await (read or uow.punctuality.ends)(workflow_id, deadline.runs)
            learnt = self._usual[key] = now, past
        return deadline.last(now, learnt[1])


async def _workflows(uow: UnitOfWork, project: str) -> list[tuple[str, int, datetime]]:
    """Return the workflows of a project that are not archived: name, id, and since when."""
    found: list[tuple[str, int, datetime]] = []
    after = None
    while True:
        page = await uow.workflow_list.page(
            WorkflowFilter(project=project), after=after, limit=_PAGE
        )
        found += [(one.name, one.id, one.created_at) for one in page]
        if len(page) < _PAGE:
            return found
        after = project, page[-1].name
