"""The job that looks whether the conditions hold that rules watch.

What begins or ceases to hold is an event, written together with what is known of it; the job that
reads events makes alerts of it, as of any other. A workflow that cannot be looked at, or a part of
the cluster, is quarantined: what was known of it stays, it is looked at again the next time, and
the others are as if it were not there.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto

import structlog

from shoal.alert.conditions.cluster import (
    FORGET,
    KINDS,
    PARTS,
    ClusterConditions,
    Problems,
    member_of,
    part_of,
)
from shoal.alert.conditions.workflows import Watched, WorkflowConditions
from shoal.alert.jobs.catalog import Catalog, Rule
from shoal.alert.jobs.quarantine import quarantined
from shoal.coordination.errors import CoordinationError
from shoal.core.alerts.occurrences import OF_CLUSTER, OF_WORKFLOWS, Trigger
from shoal.core.alerts.records import AlertCondition
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from shoal.runtime.periodic_jobs import PeriodicJobs
from shoal.sql import Database
from shoal.sql.isolation import isolate

log = structlog.get_logger()

WATCHING = "watching"
_IDLE_S = 2.0  # while no rule watches anything
_KINDS = (ItemKind.WORKFLOW, ItemKind.CONDITION, ItemKind.CLUSTER)
_OURS = (ItemConsumer.ALERTS, _KINDS)


class _Change(Enum):
    """What is stored about a condition."""

    BEGIN = auto()
    END = auto()
    ORPHAN = auto()  # its rule is gone
    FORGET = auto()  # the member that it is about is gone for good: nothing has recovered


@dataclass
class _Failures:
    """What could not be looked at this time."""

    now: datetime
    records: list[QuarantinedItem] = field(default_factory=list)
    workflows: set[tuple[str, str]] = field(default_factory=set)  # project, name or "*"
    parts: set[str] = field(default_factory=set)  # of the cluster
    unseen: set[Trigger] = field(default_factory=set)
    members: dict[str, dict[str, bool]] = field(default_factory=dict)  # kind: name: is it there

    def add(
        self,
        kind: ItemKind,
        item: str,
        error: Exception,
        project: str | None = None,
        workflow: str | None = None,
    ) -> None:
        """Add what has failed; it is looked at again the next time."""
        self.records.append(
            quarantined(
                kind,
                item,
                error,
                self.now,
                project=project,
                workflow=workflow,
                is_skipped=False,
            )
        )
        if kind is ItemKind.WORKFLOW and project is not None:
            self.workflows.add((project, workflow or "*"))

    def covers(self, one: AlertCondition) -> bool:
        """Return whether this look could not check if a condition still holds."""
        if one.trigger in OF_CLUSTER:
            about = one.subject.removeprefix(f"{one.trigger}/").partition("/")[0]
            is_degraded = one.trigger is Trigger.CLUSTER_DEGRADED
            return one.trigger in self.unseen or (is_degraded and part_of(about) in self.parts)
        places = {(one.project, one.workflow), (one.project, "*")}
        return bool(places & self.workflows)

    def is_forgotten(self, one: AlertCondition) -> bool:
        """Return whether a condition is that a member is gone, and the member is not back."""
        found = member_of(one)
        return found is not None and not self.members.get(found[0], {}).get(found[1], False)


class Watcher:
    """Does the job for one of its epochs."""

    def __init__(
        self,
        database: Database,
        epoch: int,
        watch_s: float,
        clock: Callable[[], datetime],
        cluster: ClusterConditions,
    ) -> None:
        self._database, self._epoch = database, epoch
        self._watch_s, self._clock, self._cluster = watch_s, clock, cluster
        self._catalog, self._workflows = Catalog(), WorkflowConditions()
        self._failing: set[str] = set()  # workflows that could not be looked at the last time

    async def run(self) -> None:
        """Look until cancelled. Raises JobTaken, SqlError."""
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.begin(WATCHING, self._epoch)
            await uow.commit()
        jobs = PeriodicJobs(self._clock)

        async def watch() -> None:
            is_watching = await self.look()
            # From the end: on a slow database looks would follow each other without a pause.
            jobs.next_in(WATCHING, self._watch_s if is_watching else _IDLE_S)

        jobs.every(WATCHING, watch, self._watch_s)
        await jobs.run()

    async def look(self) -> bool:
        """Look once, and store what has changed. False: no rule watches anything."""
        now = self._clock()
        async with self._database.unit_of_work(read_only=True) as uow:
            await self._catalog.refresh(uow, now)
            stored = await uow.alert_conditions.all()
            watching = [
                (project, rules)
                for project, rules in self._catalog.rules.items()
                if any(one.watches(OF_WORKFLOWS | OF_CLUSTER) for one in rules.values())
            ]
            if not watching and not stored and not await uow.quarantine.keys(*_OURS):
                return False
            known = await uow.quarantine.keys(*_OURS)
        failed = _Failures(now)
        held = await self._of_workflows(watching, failed)
        of_cluster, members = await self._of_cluster(watching, failed)
        holds = {one.key: one for one in (*held, *of_cluster)}
        begun = [one for key, one in holds.items() if key not in stored]
        # What was not looked at goes on as it was.
        ended = [one for key, one in stored.items() if key not in holds and not failed.covers(one)]
        # A deadline of yesterday is not met by missing that of today.
        going_on = {(one.project, one.rule, one.trigger, one.workflow) for one in held}
        ended = [
            one
            for one in ended
            if (one.project, one.rule, one.trigger, one.workflow) not in going_on
        ]
        # Where the rule is gone, the state of its cause is unknown.
        orphans = [one for one in ended if not self._is_watched(one)]
        forgotten = [one for one in ended if self._is_watched(one) and failed.is_forgotten(one)]
        ended = [one for one in ended if one not in orphans and one not in forgotten]
        changes = [(_Change.BEGIN, one) for one in begun]
        changes += [(_Change.END, one) for one in ended]
        changes += [(_Change.ORPHAN, one) for one in orphans]
        changes += [(_Change.FORGET, one) for one in forgotten]
        if changes or any(members.values()):
            await self._store(changes, members, failed)
        if failed.records or known:
            await self._note(failed, known)
        return True

    async def _of_workflows(
        self, watching: list[tuple[str, dict[str, Rule]]], failed: "_Failures"
    ) -> list[AlertCondition]:
        """Return what holds of workflows; one that cannot be looked at is left out."""
        workflows: list[Watched] = []
        held: list[AlertCondition] = []

        async def list_some(projects: Sequence[tuple[str, dict[str, Rule]]]) -> None:
            async with self._database.unit_of_work(read_only=True) as uow:
                found = [
                    one
                    for project, rules in projects
                    for one in await self._workflows.watched(uow, project, rules)
                ]
            workflows.extend(found)

        async def look(some: Sequence[Watched]) -> None:
            async with self._database.unit_of_work(read_only=True) as uow:
                found = [
                    condition
                    for one in some
                    for condition in await self._workflows.look(uow, one, failed.now)
                ]
            held.extend(found)

        async def skip_project(one: tuple[str, dict[str, Rule]], error: Exception) -> None:
            failed.add(ItemKind.WORKFLOW, f"{one[0]}/*", error, project=one[0])

        async def skip(one: Watched, error: Exception) -> None:
            failed.add(ItemKind.WORKFLOW, one.key, error, project=one.project, workflow=one.name)
            self._failing.add(one.key)

        await isolate(watching, list_some, skip_project)
        # Those that failed the last time are looked at alone, so that they cost the others nothing.
        alone = [one for one in workflows if one.key in self._failing]
        others = [one for one in workflows if one.key not in self._failing]
        self._failing = set()
        await isolate(others, look, skip)
        for one in alone:
            await isolate([one], look, skip)
        return held

    def _is_watched(self, one: AlertCondition) -> bool:
        rule = self._catalog.rule(one.project, one.rule)
        return rule is not None and rule.enabled and one.trigger in rule.triggers

    async def _of_cluster(
        self, watching: list[tuple[str, dict[str, Rule]]], failed: "_Failures"
    ) -> tuple[list[AlertCondition], dict[str, Mapping[str, datetime | None]]]:
        """Return what holds of the cluster, and what is new about members."""
        rules = [
            (project, rule, trigger)
            for project, named in watching
            for rule in named.values()
            for trigger in rule.watches(OF_CLUSTER)
        ]
        if not rules:
            return [], {}
        if not self._cluster.is_seen:
            failed.unseen |= OF_CLUSTER
            return [], {}
        problems: Problems = {}
        found: dict[Trigger, Problems] = {Trigger.CLUSTER_DEGRADED: problems}
        members: dict[str, Mapping[str, datetime | None]] = {}

        async def look(parts: Sequence[str]) -> None:
            for part in parts:
                async with self._database.unit_of_work(read_only=True) as uow:
                    problems.update(await self._cluster.look(uow, part))

        async def look_for_members(kinds: Sequence[str]) -> None:
            for kind in kinds:
                async with self._database.unit_of_work(read_only=True) as uow:
                    seen = await self._cluster.members(uow, kind, failed.now)
                found[KINDS[kind]], members[kind], failed.members[kind] = seen

        async def skip(part: str, error: Exception) -> None:
            if not isinstance(error, CoordinationError):  # else it cannot be seen now
                failed.add(ItemKind.CLUSTER, part, error)
            failed.parts.add(part)

        async def skip_members(kind: str, error: Exception) -> None:
            failed.add(ItemKind.CLUSTER, f"members: {kind}", error)
            failed.unseen.add(KINDS[kind])

        try:
            await isolate(PARTS, look, skip)
        except CoordinationError:  # it cannot be seen now
            failed.unseen |= OF_CLUSTER
            return [], {}
        await isolate(list(KINDS), look_for_members, skip_members)
        conditions = [
            AlertCondition(project, rule.name, f"{trigger}/{what}/{rule.name}", trigger, "", reason)
            for project, rule, trigger in rules
            for what, reason in found.get(trigger, {}).items()
        ]
        return conditions, members

    async def _store(
        self,
        wanted: Sequence[tuple[_Change, AlertCondition]],
        members: Mapping[str, Mapping[str, datetime | None]],
        failed: "_Failures",
    ) -> None:
        now = failed.now
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(WATCHING, self._epoch)
            for kind, changes in members.items():
                await uow.alert_conditions.note_members(kind, changes)
            await uow.alert_conditions.forget_members(now - FORGET)
            await uow.commit()

        async def store(changes: Sequence[tuple[_Change, AlertCondition]]) -> None:
            of = {each: [one for change, one in changes if change is each] for each in _Change}
            async with self._database.unit_of_work() as uow:
                await uow.alert_jobs.require(WATCHING, self._epoch)
                await uow.alert_conditions.begin(of[_Change.BEGIN], now)
                await uow.alert_conditions.end(of[_Change.END], now)
                await uow.alert_conditions.end(of[_Change.FORGET], now, is_told=False)
                await uow.alert_conditions.end(of[_Change.ORPHAN], now, is_event=False)
                await uow.commit()
            for one in of[_Change.BEGIN]:
                log.info("a condition holds", rule=one.rule, about=one.subject, reason=one.reason)

        async def skip(change: tuple[_Change, AlertCondition], error: Exception) -> None:
            one = change[1]
            name = f"{one.project}/{one.rule}/{one.subject}"
            workflow = one.workflow or None
            failed.add(ItemKind.CONDITION, name, error, project=one.project, workflow=workflow)

        await isolate(wanted, store, skip)

    async def _note(self, failed: "_Failures", known: Set[tuple[ItemKind, str]]) -> None:
        """Store what could not be looked at, and forget what can again."""
        now_known = {(one.kind, one.item) for one in failed.records}
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(WATCHING, self._epoch)
            for one in failed.records:
                await uow.quarantine.note(one)
            await uow.quarantine.remove(known - now_known, ItemConsumer.ALERTS)
            await uow.commit()
