"""The slots of concurrency groups: leases of attempts.

A lease belongs to one attempt and counts while the attempt is BLOCKED, QUEUED, CLAIMED or
RUNNING: so a slot is free in the transaction that ends or pauses its attempt, even after a crash.
Leases of quarantined runs do not count. A run that is tried again counts again, and its queued
attempts whose leases were given away meanwhile wait for a slot once more (``without_lease``).
Slots are given under the lock on the group's row, in the order of the queue, whichever master
asks; the owner of the first one's partition is notified.

**There are never more attempts at work than slots.** A master that gives slots first deletes the
leases that do not count, and then counts *all* that are left. A lease that does not count may do
so again (an attempt that was paused goes on) only if no slots were given since, so it was counted
when they last were. An attempt leaves BLOCKED only in a transaction that finds its lease
(``require``) and keeps it from being deleted until the commit.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, delete, func, insert, select

from shoal.core.runs.states import TaskState
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import StaleRow
from shoal.sql.repositories.definitions.concurrency import (
    AWAITS_SLOT,
    HAS_LEASE,
    OCCUPIES,
    QUALIFIED,
)
from shoal.sql.schema.tables import (
    SLOT_ORDER,
    concurrency_group,
    concurrency_lease,
    project,
    task_instance,
    workflow_instance,
)

_IDS_PER_QUERY = 500
_GROUPS_PER_QUERY = 500


@dataclass(frozen=True)
class Slot:
    """A slot that an attempt has been given and has not taken yet."""

    task_instance_id: int
    workflow_instance_id: int
    partition: int


@dataclass(frozen=True)
class Shortage:
    """The state of a group that attempts wait for."""

    exists: bool
    is_free: bool = False  # there is a slot, and an attempt without one


class Slots:
    """The ``concurrency_lease`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def shortages(self, groups: Collection[str]) -> dict[str, Shortage]:
        """Return how groups, by their qualified names, stand. Locks nothing."""
        taken = (
            select(func.count())
            .select_from(concurrency_lease)
            .join(task_instance, task_instance.c.id == concurrency_lease.c.task_instance_id)
            .where(concurrency_lease.c.group_id == concurrency_group.c.id, OCCUPIES)
            .scalar_subquery()
        )
        query = select(
            QUALIFIED.label("qualified"), (concurrency_group.c.slots > taken).label("has_room")
        ).join_from(concurrency_group, project)
        found = {group: Shortage(exists=False) for group in groups}
        for chunk in batched(sorted(groups), _GROUPS_PER_QUERY):
            for row in await self._connection.rows(query.where(QUALIFIED.in_(chunk))):
                # Asked for one by one: only so SQLite uses the index of the waiting ones.
                waits = row.has_room and bool(await self.waiting_in(row.qualified, most=1))
                found[row.qualified] = Shortage(exists=True, is_free=waits)
        return found

    async def waiting_in(self, group: str, most: int = 100) -> set[int]:
        """Return partitions of the first attempts that wait for a slot of the group."""
        rows = await self._connection.rows(
            _slots()
            .where(task_instance.c.concurrency_group == group, AWAITS_SLOT, ~HAS_LEASE)
            .order_by(*SLOT_ORDER)
            .limit(most)
        )
        return {row.partition for row in rows}

    async def given(self, groups: Collection[str]) -> list[Slot]:
        """Return the slots of these groups that were given and are not taken yet."""
        query = (
            _slots()
            .join(concurrency_lease, concurrency_lease.c.task_instance_id == task_instance.c.id)
            .where(AWAITS_SLOT)
        )
        found: list[Slot] = []
        for chunk in batched(sorted(groups), _GROUPS_PER_QUERY):
            rows = query.where(task_instance.c.concurrency_group.in_(chunk))
            found.extend(_slot(row) for row in await self._connection.rows(rows))
        return found

    async def give(self, group: str, at: datetime) -> list[Slot]:
        """Give the free slots of a group to the first attempts; return what was given."""
        locked = (
            select(concurrency_group.c.id, concurrency_group.c.slots)
            .join_from(concurrency_group, project)
            .where(QUALIFIED.in_([group]))
        )
        # Not more: definitions that name the group can be published meanwhile.
        row = await self._connection.first(
            locked.with_for_update(key_share=True, of=concurrency_group)
        )
        if row is None:
            return []
        await self._take_back(row.id)
        count = select(func.count()).select_from(concurrency_lease)
        taken = await self._connection.scalar(count.where(concurrency_lease.c.group_id == row.id))
        if taken >= row.slots:
            return []
        waiters = await self._connection.rows(
            _slots()
            .where(task_instance.c.concurrency_group == group, AWAITS_SLOT, ~HAS_LEASE)
            .order_by(*SLOT_ORDER)
            .limit(row.slots - taken)
        )
        if waiters:
            await self._connection.execute(
                insert(concurrency_lease),
                [
                    {"task_instance_id": one.id, "group_id": row.id, "granted_at": at}
                    for one in waiters
                ],
            )
        return [_slot(one) for one in waiters]

    async def _take_back(self, group_id: int) -> None:
        """Delete the leases of a group that do not count."""
        lease = concurrency_lease.c
        over = (
            select(lease.task_instance_id)
            .join_from(
                concurrency_lease,
                task_instance,
                task_instance.c.id == lease.task_instance_id,
                isouter=True,
            )
            .where(lease.group_id == group_id, ~OCCUPIES | task_instance.c.id.is_(None))
        )
        # One that is being taken at this moment counts, and is not waited for.
        locked = over.with_for_update(of=concurrency_lease, skip_locked=True)
        rows = await self._connection.rows(locked)
        for chunk in batched([row.task_instance_id for row in rows], _IDS_PER_QUERY):
            # Read again: one may have been taken just before it was locked.
            again = over.where(lease.task_instance_id.in_(chunk))
            await self._connection.execute(
                delete(concurrency_lease).where(
                    lease.task_instance_id.in_(
                        [row.task_instance_id for row in await self._connection.rows(again)]
                    )
                )
            )

    async def without_lease(self, instance_ids: Collection[int]) -> dict[int, frozenset[int]]:
        """Return queued attempts of these runs that need a slot and have none, by instance."""
        t = task_instance.c
        found: defaultdict[int, set[int]] = defaultdict(set)
        for chunk in batched(sorted(instance_ids), _IDS_PER_QUERY):
            query = select(t.id, t.workflow_instance_id).where(
                t.workflow_instance_id.in_(chunk),
                t.concurrency_group.is_not(None),
                t.state == TaskState.QUEUED,
                ~HAS_LEASE,
            )
            for row in await self._connection.rows(query):
                found[row.workflow_instance_id].add(row.id)
        return {instance: frozenset(ids) for instance, ids in found.items()}

    async def require(self, task_instance_ids: Collection[int]) -> None:
        """Raise StaleRow unless all these attempts have a slot; they keep it until the commit."""
        lease = concurrency_lease.c
        for chunk in batched(sorted(task_instance_ids), _IDS_PER_QUERY):
            query = (
                select(lease.task_instance_id)
                .where(lease.task_instance_id.in_(chunk))
                .order_by(lease.task_instance_id)
                .with_for_update(read=True, key_share=True)
            )
            found = {row.task_instance_id for row in await self._connection.rows(query)}
            if missing := set(chunk) - found:
                raise StaleRow("concurrency_lease", missing)


def _slots() -> Select[Any]:
    return select(
        task_instance.c.id, task_instance.c.workflow_instance_id, workflow_instance.c.partition
    ).join_from(task_instance, workflow_instance)


def _slot(row: Row[Any]) -> Slot:
    return Slot(row.id, row.workflow_instance_id, row.partition)
