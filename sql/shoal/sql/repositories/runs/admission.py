"""Admission: which runs of a workflow are active and which wait, under the workflow's lock.

A master that admits runs, or creates or ends some of a workflow that does not let all run side by
side, first locks the workflow's row: after its partitions (``UnitOfWork.fence``), before it
writes any instance, several workflows in the order of their ids. So what it counts stays true
until it commits, and there are no deadlocks.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, String, cast, func, literal, select, update

from shoal.core.definition.model import Overlap
from shoal.core.runs.overlap import Lineup, OverlapPolicy, Waiter
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.states import WorkflowState
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.repositories.plans import PlanCache
from shoal.sql.repositories.runs.commands import own_key
from shoal.sql.schema.tables import HAS_NOT_ENDED, IS_WAITING, command, workflow, workflow_instance
from shoal.sql.statements.quarantined import is_quarantined
from shoal.sql.statements.value_sets import Among, numbers

_IDS_PER_QUERY = 500
_SUPERSEDE = "supersede:"
_OF = workflow_instance.c
_NEWEST = select(workflow.c.id, workflow.c.version)
# NO KEY UPDATE: commands that refer to the workflow may be inserted meanwhile.
_LOCKED = (
    _NEWEST.where(Among(workflow.c.id, numbers("ids")))
    .order_by(workflow.c.id)
    .with_for_update(key_share=True)
)
_OF_INSTANCES = (
    _NEWEST.join(workflow_instance, _OF.workflow_id == workflow.c.id)
    .where(Among(_OF.id, numbers("ids")), _OF.backfill_id.is_(None))
    .distinct()
)
# Asked to stop already, if not carried out yet: it must not start in between.
_IS_SUPERSEDED = (
    select(command.c.id)
    .where(command.c.idempotency_key == literal(own_key(_SUPERSEDE)) + cast(_OF.id, String))
    .exists()
)
# Nothing happens in a quarantined run until it is repaired: it neither waits nor counts.
_IS_QUARANTINED = is_quarantined(_OF.id, ItemKind.INSTANCE)
# Backfills have a window of their own: their runs neither wait nor count.
_IS_ACTIVE = HAS_NOT_ENDED & ~IS_WAITING & _OF.backfill_id.is_(None) & ~_IS_QUARANTINED
_ORDER: Mapping[Overlap, tuple[ColumnElement[Any], ...]] = {
    Overlap.QUEUE_BY_PRIORITY: (_OF.priority, _OF.logical_time, _OF.id),
}


def supersede_key(instance_id: int) -> str:
    """Return the idempotency key of the command that stops a run which waits."""
    return f"{_SUPERSEDE}{instance_id}"


class AdmissionRepository:
    """The runs of workflows that have not ended, as overlap policies see them."""

    def __init__(self, connection: Connection, plans: PlanCache) -> None:
        self._connection = connection
        self._plans = plans
        # Workflows whose newest version is unusable, and why: their policies are not known.
        self.unknown: dict[int, str] = {}

    async def lock(self, newest: Mapping[int, int]) -> dict[int, OverlapPolicy]:
        """Lock workflows until the transaction ends; return their present policies.

        ``newest``: their newest versions, as this transaction has read them. Those that let all
        their runs run side by side are left out: they need no admission. So are those in
        ``unknown``, of which no run is admitted.
        """
        return await self._lock(await self._policies_of(newest.items()))

    async def lock_of(
        self, instance_ids: Collection[int], *, all_of_them: bool = False
    ) -> dict[int, OverlapPolicy]:
        """Lock the workflows of these instances as ``lock`` does; backfills' do not matter.

        ``all_of_them``: also those that let all their runs run side by side.
        """
        if not instance_ids:
            return {}
        return await self._lock(await self._policies(_OF_INSTANCES, instance_ids), all_of_them)

    async def _lock(
        self, found: Mapping[int, OverlapPolicy], all_of_them: bool = False
    ) -> dict[int, OverlapPolicy]:
        wanted = [i for i, p in found.items() if all_of_them or p.overlap is not Overlap.ALLOW]
        if not wanted:
            return {}
        # Read again: what another transaction was publishing is there now.
        return await self._policies(_LOCKED, wanted)

    async def _policies(self, query: Select[Any], ids: Collection[int]) -> dict[int, OverlapPolicy]:
        rows = await self._connection.fetch(query, {"ids": sorted(ids)})
        return await self._policies_of([(row.id, row.version) for row in rows])

    async def _policies_of(self, versions: Collection[tuple[int, int]]) -> dict[int, OverlapPolicy]:
        plans, errors = await self._plans.sound(self._connection, versions)
        self.unknown.update((key[0], str(error)) for key, error in errors.items())
        return {key[0]: OverlapPolicy.of(found.plan.spec) for key, found in plans.items()}

    async def lineup(self, workflow_id: int, policy: OverlapPolicy) -> Lineup:
        """Return the unfinished runs of a locked workflow, as far as its policy needs them."""
        replaces = policy.overlap is Overlap.REPLACE
        active = (
            select(_OF.id, _OF.state)
            .where(_OF.workflow_id == workflow_id, _IS_ACTIVE)
            .order_by(_OF.id)
        )
        # More than there is room for make no difference to what may start.
        rows = await self._connection.rows(active if replaces else active.limit(policy.max_active))
        replaceable = [row.id for row in rows if row.state != WorkflowState.STOPPING]
        return Lineup(
            active=len(rows),
            waiting=await self._waiting(workflow_id, policy),
            waiting_count=await self._waiting_count(workflow_id),
            replaceable=tuple(replaceable) if replaces else (),
            active_ids=tuple(row.id for row in rows),
        )

    async def _waiting(self, workflow_id: int, policy: OverlapPolicy) -> tuple[Waiter, ...]:
        query = (
            select(_OF.id, _OF.priority, _OF.logical_time)
            .where(_OF.workflow_id == workflow_id, IS_WAITING, ~_IS_QUARANTINED, ~_IS_SUPERSEDED)
            .order_by(*_ORDER.get(policy.overlap, (_OF.id,)))
        )
        if policy.overlap in (Overlap.QUEUE, Overlap.QUEUE_BY_PRIORITY):
            query = query.limit(policy.max_active)
        rows = await self._connection.rows(query)
        return tuple(Waiter(row.id, row.priority, row.logical_time) for row in rows)

    async def _waiting_count(self, workflow_id: int) -> int:
        query = select(func.count()).where(
            _OF.workflow_id == workflow_id, IS_WAITING, ~_IS_QUARANTINED
        )
        count: int = await self._connection.scalar(query.select_from(workflow_instance))
        return count

    async def admit(self, instance_ids: Collection[int], at: datetime) -> dict[int, int]:
        """Let runs that wait start; return the partitions of those that did wait, by id."""
        admitted: dict[int, int] = {}
        for chunk in batched(sorted(instance_ids), _IDS_PER_QUERY):
            statement = (
                update(workflow_instance)
                .where(_OF.id.in_(chunk), IS_WAITING)
                .values(admitted_at=at)
                .returning(_OF.id, _OF.partition)
            )
            rows = await self._connection.changed(statement)
            admitted.update({row.id: row.partition for row in rows})
        return admitted

    async def withdraw(self, instance_ids: Collection[int], workflow_ids: Collection[int]) -> None:
        """Take back the admission of quarantined runs that have not begun.

        ``workflow_ids``: the workflows that are locked; runs of others are left alone.
        """
        for chunk in batched(sorted(instance_ids), _IDS_PER_QUERY):
            await self._connection.execute(
                update(workflow_instance)
                .where(
                    _OF.id.in_(chunk),
                    _OF.workflow_id.in_(sorted(workflow_ids)),
                    _OF.state == WorkflowState.QUEUED,
                    _OF.backfill_id.is_(None),
                    _IS_QUARANTINED,
                )
                .values(admitted_at=None)
            )

    async def not_begun(
        self, instance_ids: Collection[int], admitted_before: datetime
    ) -> dict[int, tuple[int, int]]:
        """Return (workflow id, partition) of those that may start and have not, by id."""
        found: dict[int, tuple[int, int]] = {}
        for chunk in batched(sorted(instance_ids), _IDS_PER_QUERY):
            query = select(_OF.id, _OF.workflow_id, _OF.partition).where(
                _OF.id.in_(chunk),
                _OF.state == WorkflowState.QUEUED,
                _OF.admitted_at < admitted_before,
            )
            rows = await self._connection.rows(query)
            found.update({row.id: (row.workflow_id, row.partition) for row in rows})
        return found

    async def stopping(self, instance_ids: Collection[int]) -> set[int]:
        """Return those of the instances that are being stopped, or were."""
        found: set[int] = set()
        for chunk in batched(sorted(instance_ids), _IDS_PER_QUERY):
            query = select(_OF.id).where(
                _OF.id.in_(chunk), _OF.state.in_([WorkflowState.STOPPING, WorkflowState.STOPPED])
            )
            found.update(row.id for row in await self._connection.rows(query))
        return found

    async def descendants(self, root_id: int, most: int) -> int:
        """Return how many instances descend from one, at most ``most``."""
        some = select(_OF.id).where(_OF.root_id == root_id).limit(most).subquery()
        count: int = await self._connection.scalar(select(func.count()).select_from(some))
        return count

    async def partitions_of(self, instance_ids: Collection[int]) -> dict[int, int]:
        """Return the partitions of instances by id."""
        found: dict[int, int] = {}
        for chunk in batched(sorted(instance_ids), _IDS_PER_QUERY):
            query = select(_OF.id, _OF.partition).where(_OF.id.in_(chunk))
            found.update({row.id: row.partition for row in await self._connection.rows(query)})
        return found
