"""The job that looks whether the conditions hold that rules watch.

What begins or ceases to hold is an event, written together with what is known of it; the job that
reads events makes alerts of it, as of any other.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import structlog

from shoal.alert.jobs.catalog import Catalog, Rule
from shoal.alert.watching.cluster import KINDS, Cluster
from shoal.alert.watching.workflows import Workflows
from shoal.core.alerts.occurrences import OF_CLUSTER, OF_WORKFLOWS, Trigger
from shoal.core.alerts.records import Condition
from shoal.sql import Database, UnitOfWork

log = structlog.get_logger()

WATCHING = "watching"
_IDLE_S = 2.0  # while no rule watches anything
_FORGET = timedelta(days=30)  # members that are gone


class Watcher:
    """Does the job for one of its epochs."""

    def __init__(
        self,
        database: Database,
        epoch: int,
        watch_s: float,
        clock: Callable[[], datetime],
        cluster: Cluster,
    ) -> None:
        self._database, self._epoch = database, epoch
        self._watch_s, self._clock, self._cluster = watch_s, clock, cluster
        self._catalog, self._workflows = Catalog(), Workflows()

    async def run(self) -> None:
        """Look until cancelled. Raises JobTaken, SqlError."""
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.begin(WATCHING, self._epoch)
            await uow.commit()
        while True:
            is_watching = await self.look()
            await asyncio.sleep(self._watch_s if is_watching else _IDLE_S)

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
            if not watching and not stored:
                return False
            held = [
                one
                for project, rules in watching
                for one in await self._workflows.look(uow, project, rules, now)
            ]
            of_cluster, members, is_seen = await self._of_cluster(uow, watching, now)
        holds = {one.key: one for one in (*held, *of_cluster)}
        begun = [one for key, one in holds.items() if key not in stored]
        ended = [
            one
            for key, one in stored.items()
            if key not in holds and (is_seen or one.trigger not in OF_CLUSTER)
        ]
        # A deadline of yesterday is not met by missing that of today.
        going_on = {(one.project, one.rule, one.trigger, one.workflow) for one in held}
        ended = [
            one
            for one in ended
            if (one.project, one.rule, one.trigger, one.workflow) not in going_on
        ]
        # Where the rule is gone, nobody has seen whether its cause is.
        orphans = [one for one in ended if not self._is_watched(one)]
        ended = [one for one in ended if self._is_watched(one)]
        if begun or ended or orphans or any(members.values()):
            await self._store(begun, ended, orphans, members, now)
        return True

    def _is_watched(self, one: Condition) -> bool:
        rule = self._catalog.rule(one.project, one.rule)
        return rule is not None and rule.enabled and one.trigger in rule.triggers

    async def _of_cluster(
        self,
        uow: UnitOfWork,
        watching: list[tuple[str, dict[str, Rule]]],
        now: datetime,
    ) -> tuple[list[Condition], dict[str, Mapping[str, datetime | None]], bool]:
        """Return what holds of the cluster, what is new about members, and whether it is seen."""
        rules = [
            (project, rule, trigger)
            for project, named in watching
            for rule in named.values()
            for trigger in rule.watches(OF_CLUSTER)
        ]
        if not rules:
            return [], {}, True
        problems = await self._cluster.look(uow)
        if problems is None:
            return [], {}, False
        found: dict[Trigger, dict[str, str]] = {Trigger.CLUSTER_DEGRADED: problems}
        members: dict[str, Mapping[str, datetime | None]] = {}
        for kind, trigger in KINDS.items():
            found[trigger], members[kind] = await self._cluster.members(uow, kind, now)
        conditions = [
            Condition(project, rule.name, f"{trigger}/{what}/{rule.name}", trigger, "", reason)
            for project, rule, trigger in rules
            for what, reason in found[trigger].items()
        ]
        return conditions, members, True

    async def _store(
        self,
        begun: list[Condition],
        ended: list[Condition],
        orphans: list[Condition],
        members: Mapping[str, Mapping[str, datetime | None]],
        now: datetime,
    ) -> None:
        async with self._database.unit_of_work() as uow:
            await uow.alert_jobs.require(WATCHING, self._epoch)
            for kind, changes in members.items():
                await uow.alert_conditions.note_members(kind, changes)
            await uow.alert_conditions.forget_members(now - _FORGET)
            await uow.alert_conditions.begin(begun, now)
            await uow.alert_conditions.end(ended, now)
            await uow.alert_conditions.end(orphans, now, is_told=False)
            await uow.commit()
        for one in begun:
            log.info("a condition holds", rule=one.rule, about=one.subject, reason=one.reason)
