"""Which rows are no longer needed, and their deletion.

Rows are read in windows along their ids, so a reading costs the same however long the history is,
and a deletion gets the rows by their ids. Every deletion tests its conditions once more, on rows
that are locked: what has changed since the reading stays.

**What stays, whatever its age is.** Of instances: what is not finished; what has an unfinished
nested instance; a nested one as long as its parent is there, so parents go first and no parent
ever misses a child that it may ask; those of a backfill as long as that is there, and with it the
state that a retry needs; what a pending command is about; the newest of each workflow and its
newest success; runs for a logical time that tasks which wait now may need. Of commands: what
is pending, and what has made an instance or a backfill, or is about one, that is there. An
instance goes as a whole, in one transaction with all that refers to it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Table,
    and_,
    bindparam,
    delete,
    func,
    not_,
    null,
    or_,
    select,
)

from shoal.core.runs.states import FINISHED_WORKFLOW, WorkflowState
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.repositories.exports.verified_history import Verified
from shoal.sql.schema.tables import (
    HAS_NOT_ENDED,
    IS_PENDING,
    IS_PENDING_REQUEST,
    backfill,
    backfill_run,
    command,
    concurrency_lease,
    dependency_wait,
    event,
    instance_label,
    literals,
    task_instance,
    workflow,
    workflow_instance,
)
from shoal.sql.schema.types import UnreadableValue
from shoal.sql.statements.index_walks import walk_newest
from shoal.sql.statements.value_sets import Among, numbers

_i, _b, _c = workflow_instance.c, backfill.c, command.c
_child = workflow_instance.alias("child")
_IDS_PER_QUERY = 500
_SAMPLE = 100  # rows that are looked at to find out whether old ones follow young ones
_OLD_SHARE = 4  # a quarter of old rows: a walk goes on behind them
_MAX_ID = 2**63 - 1

_has_open_child = (
    select(_child.c.id)
    .where(
        _child.c.parent_task_id.in_(
            select(task_instance.c.id)
            .where(task_instance.c.workflow_instance_id == _i.id)
            # By itself that would be about the tasks of all instances: two levels are too many.
            .correlate(workflow_instance)
        ),
        _child.c.parent_task_id.is_not(None),  # the condition of its index
        _child.c.state.not_in(literals(FINISHED_WORKFLOW)),
    )
    .exists()
)
_has_parent = (
    select(task_instance.c.id)
    .where(task_instance.c.id == _i.parent_task_id)
    .correlate(workflow_instance)
    .exists()
)
_has_backfill = select(_b.id).where(_b.id == _i.backfill_id).exists()
_is_asked_for = select(_c.id).where(IS_PENDING_REQUEST, _c.instance_id == _i.id).exists()
_is_old = and_(
    _i.state.in_(literals(FINISHED_WORKFLOW)),
    _i.finished_at < bindparam("before"),
    _i.logical_time < bindparam("before"),
    ~_has_open_child,
    ~_is_asked_for,
)
# What has to go before it, if it is still there: the instance of its parent task, and its backfill.
_PARENT = (
    select(task_instance.c.workflow_instance_id)
    .where(task_instance.c.id == _i.parent_task_id)
    .correlate(workflow_instance)
    .scalar_subquery()
    .label("parent")
)
_BACKFILL = select(_b.id).where(_b.id == _i.backfill_id).scalar_subquery().label("backfill")
_INSTANCE_MAY_GO = and_(_is_old, ~_has_parent, ~_has_backfill)
_has_open_run = (
    select(_i.id)
    .where(_i.backfill_id == _b.id, _i.backfill_id.is_not(None), HAS_NOT_ENDED)
    .exists()
)
_BACKFILL_MAY_GO = and_(_b.finished_at < bindparam("before"), ~_has_open_run)
_COMMAND_IS_OLD = and_(~IS_PENDING, _c.handled_at < bindparam("before"))
_COMMAND_MAY_GO = and_(
    _COMMAND_IS_OLD,
    ~select(_i.id).where(_i.id == _c.result_instance_id).exists(),
    ~select(_i.id).where(_i.id == _c.instance_id).exists(),
    ~select(_i.id).where(_i.command_id == _c.id).exists(),
    ~select(_b.id).where(_b.command_id == _c.id).exists(),
    ~select(_b.id).where(_b.id == _c.backfill_id).exists(),
)
# With an exported history: what has left the database is in a file of it that was verified. A
# change since has an event with a higher id, which stays until it was read.
_INSTANCE_IS_EXPORTED = and_(
    or_(_i.id <= bindparam("walked"), _i.id > bindparam("walk_end")),
    ~select(event.c.id)
    .where(event.c.workflow_instance_id == _i.id, event.c.id > bindparam("event"))
    .exists(),
)
_COMMAND_IS_EXPORTED = and_(
    _c.id <= bindparam("command"), not_(Among(_c.id, numbers("open_commands")))
)


def _bounds(verified: Verified) -> dict[str, Any]:
    return {
        "walked": verified.instances,
        "walk_end": verified.instances_end if verified.sequence else _MAX_ID,
        "event": verified.event,
    }


def _command_bounds(verified: Verified) -> dict[str, Any]:
    return {"command": verified.command, "open_commands": sorted(verified.open_commands)}


@dataclass(frozen=True)
class Expired:
    """A row that may go."""

    id: int
    partition: int
    workflow_id: int
    since: datetime  # when it ended
    logical_time: datetime | None = None  # of instances
    is_exported: bool = True  # or nothing has to be, before it goes
    parent: int | None = None  # of instances: the instance that has to go before it
    backfill: int | None = None  # of instances: the backfill that has to go before it


@dataclass(frozen=True)
class ExpiryWindow:
    """One window of a walk along a table. ``next`` is where to go on; None: it was the last."""

    expired: Sequence[Expired]
    next: int | None


@dataclass(frozen=True)
class ExpiryScope:
    """Whose rows are meant."""

    partitions: Collection[int] | None  # None: of all
    workflows: Collection[int] | None = None  # None: of all


@dataclass(frozen=True)
class CommandTies:
    """What a command has made, or is about, and is still there."""

    instances: set[int]
    backfills: set[int]


class ExpiredRows:
    """Finds rows that may go, and deletes them. Deleting is for the partitions' owner."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # -- what may go -------------------------------------------------------------------------

    async def instances(
        self,
        scope: ExpiryScope,
        before: datetime,
        after: int,
        size: int,
        verified: Verified | None = None,
    ) -> ExpiryWindow:
        """Check ``size`` instances behind the id ``after``.

        Those are found, too, that wait for a parent or a backfill to go before them; and with
        ``verified`` those that wait for the export.
        """
        query, values = _old_instances(verified)
        return await self._window(workflow_instance, query, scope, before, after, size, values)

    async def instances_among(
        self,
        ids: Collection[int],
        scope: ExpiryScope,
        before: datetime,
        verified: Verified | None = None,
    ) -> list[Expired]:
        """Return those of these instances that ``instances`` would find."""
        query, values = _old_instances(verified)
        return await self._among_these(_i, query, ids, scope, before, values)

    async def backfills_among(
        self, ids: Collection[int], scope: ExpiryScope, before: datetime
    ) -> list[Expired]:
        """Return those of these backfills that ``backfills`` would find."""
        return await self._among_these(_b, _OLD_BACKFILLS, ids, scope, before, {})

    async def _among_these(
        self,
        columns: Any,
        query: Any,
        ids: Collection[int],
        scope: ExpiryScope,
        before: datetime,
        values: Mapping[str, Any],
    ) -> list[Expired]:
        query, values = _scoped(columns, query, scope, before, values)
        found: list[Expired] = []
        for chunk in batched(sorted(ids), _IDS_PER_QUERY):
            rows = await self._connection.rows(
                query.where(_among(columns.id)), {**values, "ids": chunk}
            )
            found += _readable(rows)
        return found

    async def backfills(
        self, scope: ExpiryScope, before: datetime, after: int, size: int
    ) -> ExpiryWindow:
        """Check ``size`` backfills behind the id ``after``."""
        return await self._window(backfill, _OLD_BACKFILLS, scope, before, after, size)

    async def commands(
        self,
        scope: ExpiryScope,
        before: datetime,
        after: int,
        size: int,
        verified: Verified | None = None,
        *,
        is_rehearsal: bool = False,
    ) -> ExpiryWindow:
        """Check ``size`` commands behind the id ``after``.

        In a rehearsal those are found, too, that wait for others to go before them: ``ties``.
        """
        columns = [_c.id, _c.partition, _c.workflow_id, _c.handled_at.label("since")]
        query = select(*columns).where(_COMMAND_IS_OLD if is_rehearsal else _COMMAND_MAY_GO)
        values = {}
        if verified is not None:
            query = query.add_columns(_COMMAND_IS_EXPORTED.label("is_exported"))
            values = _command_bounds(verified)
        return await self._window(command, query, scope, before, after, size, values)

    async def _window(
        self,
        table: Table,
        query: Any,
        scope: ExpiryScope,
        before: datetime,
        after: int,
        size: int,
        bounds: Mapping[str, Any] = MappingProxyType({}),
    ) -> ExpiryWindow:
        """Rows are born in order of their ids, so the walk ends where most rows are too young.

        Not with the first one: a clock may have been wrong when some rows were made.
        """
        c = table.c
        seen = await self._ages(table, after, size)
        if not seen:
            return ExpiryWindow([], None)
        last = seen[-1].id
        query, values = _scoped(c, query, scope, before, bounds)
        query = query.where(c.id > after, c.id <= last)
        rows = await self._connection.rows(query.order_by(c.id), values)
        is_last = len(seen) < size or (
            _are_young(seen, before) and not await self._is_old_later(table, last, before)
        )
        return ExpiryWindow(_readable(rows), None if is_last else last)

    async def _ages(self, table: Table, after: int, size: int) -> Sequence[Any]:
        """Return the first rows behind an id, with when they were made."""
        c = table.c
        query = select(c.id, c.created_at).where(c.id > after).order_by(c.id)
        return await self._connection.rows(query.limit(size))

    async def _is_old_later(self, table: Table, last: int, before: datetime) -> bool:
        """Whether rows behind young ones are old: those were made while a clock was ahead.

        Looks at samples, each twice as far away as the one before: a few queries, however many
        rows there are. Old rows that are missed are found when there are more of them.
        """
        highest = await self._connection.scalar(select(func.max(table.c.id)))
        distance = 0
        while last + distance < (highest or 0):
            sample = await self._ages(table, last + distance, _SAMPLE)
            if sample and not _are_young(sample, before):
                return True
            distance = max(2 * distance, _SAMPLE)
        return False

    async def kept(self, workflow_id: int, newest: int) -> set[int]:
        """Return the instances of a workflow that stay: the newest, and the newest success.

        Of a deleted workflow none does.
        """
        is_there = select(workflow.c.id).where(
            workflow.c.id == workflow_id, workflow.c.deleted_at.is_(None)
        )
        if await self._connection.first(is_there) is None:
            return set()
        order: list[Column[Any]] = [_i.created_at, _i.id]
        found = []
        for states, limit in ((FINISHED_WORKFLOW, newest), ({WorkflowState.SUCCEEDED}, 1)):
            walks = [[_i.workflow_id == workflow_id, _i.state == one] for one in sorted(states)]
            if limit > 0:
                found += await walk_newest(self._connection, order, walks, limit)
        return {row.id for row in found}

    async def looked_for_since(self, workflow_ids: Collection[int]) -> dict[int, datetime]:
        """Return the earliest logical time of instances that wait for runs of these workflows.

        Workflows that no task waits for are missing.
        """
        w = dependency_wait.c
        query = (
            select(w.workflow_id, func.min(_i.logical_time).label("since"))
            .join_from(dependency_wait, workflow_instance, _i.id == w.workflow_instance_id)
            .group_by(w.workflow_id)
        )
        found: dict[int, datetime] = {}
        for chunk in batched(sorted(set(workflow_ids)), _IDS_PER_QUERY):
            these = query.where(_among(w.workflow_id))
            for row in await self._connection.rows(these, {"ids": chunk}):
                found[row.workflow_id] = row.since
        return found

    async def attempts_of(self, ids: Collection[int]) -> dict[int, int]:
        """Return how many attempts each instance has."""
        return await self._counts(task_instance.c.workflow_instance_id, ids)

    async def events_of(
        self, ids: Collection[int], since: datetime | None = None
    ) -> dict[int, int]:
        """Return how many events each instance has, ``since`` then; those without are missing."""
        is_meant = [] if since is None else [event.c.at >= since]
        return await self._counts(event.c.workflow_instance_id, ids, *is_meant)

    async def ties_of(self, ids: Collection[int]) -> dict[int, CommandTies]:
        """Return what each of these commands is tied to, and goes after."""
        found: dict[int, CommandTies] = {}
        queries = (
            select(_c.id, _i.id.label("instance"), null().label("backfill")).join_from(
                command,
                workflow_instance,
                or_(_i.id == _c.result_instance_id, _i.id == _c.instance_id),
            ),
            select(_c.id, _i.id.label("instance"), null().label("backfill")).join_from(
                command, workflow_instance, _i.command_id == _c.id
            ),
            select(_c.id, null().label("instance"), _b.id.label("backfill")).join_from(
                command, backfill, or_(_b.command_id == _c.id, _b.id == _c.backfill_id)
            ),
        )
        for query in queries:
            for chunk in batched(sorted(ids), _IDS_PER_QUERY):
                rows = await self._connection.rows(query.where(_among(_c.id)), {"ids": chunk})
                for row in rows:
                    ties = found.setdefault(row.id, CommandTies(set(), set()))
                    if row.instance is not None:
                        ties.instances.add(row.instance)
                    if row.backfill is not None:
                        ties.backfills.add(row.backfill)
        return found

    async def _counts(
        self, column: Column[int], ids: Collection[int], *conditions: ColumnElement[bool]
    ) -> dict[int, int]:
        query = select(column.label("of"), func.count().label("rows")).group_by(column)
        query = query.where(*conditions)
        found: dict[int, int] = {}
        for chunk in batched(sorted(ids), _IDS_PER_QUERY):
            rows = await self._connection.rows(query.where(_among(column)), {"ids": chunk})
            found.update({row.of: row.rows for row in rows})
        return found

    # -- deletion ----------------------------------------------------------------------------

    async def delete_instances(
        self, ids: Collection[int], before: datetime, verified: Verified | None = None
    ) -> "Deleted":
        """Delete those of these instances that may still go, with all that belongs to them.

        A recovery at this moment waits for us and finds it gone, or we find it open. With
        ``verified`` those stay that changed since they were exported.
        """
        may_go, values = _INSTANCE_MAY_GO, {"before": before, "ids": sorted(ids)}
        if verified is not None:
            may_go = and_(may_go, _INSTANCE_IS_EXPORTED)
            values |= _bounds(verified)
        query = (
            select(_i.id, _i.partition)
            .where(_among(_i.id), may_go)
            .order_by(_i.id)
            .with_for_update(of=workflow_instance, skip_locked=True)
        )
        rows = await self._connection.rows(query, values)
        going = [row.id for row in rows]
        if not going:
            return Deleted({}, 0, 0)
        attempts = select(task_instance.c.id).where(_among(task_instance.c.workflow_instance_id))
        lease, wait = concurrency_lease.c.task_instance_id, dependency_wait.c.task_instance_id
        await self._delete(concurrency_lease, lease.in_(attempts), going)
        await self._delete(dependency_wait, wait.in_(attempts), going)
        events = await self._delete(event, _among(event.c.workflow_instance_id), going)
        await self._delete(instance_label, _among(instance_label.c.workflow_instance_id), going)
        of_instance = _among(task_instance.c.workflow_instance_id)
        gone = await self._delete(task_instance, of_instance, going)
        await self._delete(workflow_instance, _among(_i.id), going)
        return Deleted({row.id: row.partition for row in rows}, gone, events)

    async def delete_backfills(self, ids: Collection[int], before: datetime) -> "Deleted":
        """Delete those of these backfills that may still go, with their rows of dates."""
        query = (
            select(_b.id, _b.partition)
            .where(_among(_b.id), _BACKFILL_MAY_GO)
            .order_by(_b.id)
            .with_for_update(of=backfill, skip_locked=True)
        )
        rows = await self._connection.rows(query, {"before": before, "ids": sorted(ids)})
        going = [row.id for row in rows]
        if going:
            await self._delete(backfill_run, _among(backfill_run.c.backfill_id), going)
            await self._delete(backfill, _among(_b.id), going)
        return Deleted({row.id: row.partition for row in rows}, 0, 0)

    async def delete_commands(
        self, ids: Collection[int], before: datetime, verified: Verified | None = None
    ) -> "Deleted":
        """Delete those of these commands that may still go. What is handled stays so."""
        may_go, values = _COMMAND_MAY_GO, {"before": before, "ids": sorted(ids)}
        if verified is not None:
            may_go = and_(may_go, _COMMAND_IS_EXPORTED)
            values |= _command_bounds(verified)
        rows = await self._connection.rows(
            select(_c.id, _c.partition)
            .where(_among(_c.id), may_go)
            .with_for_update(of=command, skip_locked=True),
            values,
        )
        going = [row.id for row in rows]
        if going:
            await self._delete(command, _among(_c.id), going)
        return Deleted({row.id: row.partition for row in rows}, 0, 0)

    async def _delete(
        self, table: Table, condition: ColumnElement[bool], ids: Sequence[int]
    ) -> int:
        statement = delete(table).where(condition)
        result = await self._connection.execute(statement, {"ids": ids}, is_long=True)
        return result.rowcount


_OLD_BACKFILLS = select(_b.id, _b.partition, _b.workflow_id, _b.finished_at.label("since")).where(
    _BACKFILL_MAY_GO
)


def _old_instances(verified: Verified | None) -> tuple[Any, Mapping[str, Any]]:
    """Return the query for instances that may go, once what they belong to has gone."""
    columns = [_i.id, _i.partition, _i.workflow_id, _i.finished_at.label("since")]
    query = select(*columns, _i.logical_time, _PARENT, _BACKFILL).where(_is_old)
    if verified is None:
        return query, {}
    return query.add_columns(_INSTANCE_IS_EXPORTED.label("is_exported")), _bounds(verified)


def _scoped(
    columns: Any, query: Any, scope: ExpiryScope, before: datetime, bounds: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return a query for the rows of ``scope`` alone, and its values."""
    values = {"before": before, **bounds}
    if scope.partitions is not None:
        query = query.where(Among(columns.partition, numbers("partitions")))
        values["partitions"] = sorted(scope.partitions)
    if scope.workflows is not None:
        query = query.where(Among(columns.workflow_id, numbers("workflows")))
        values["workflows"] = sorted(scope.workflows)
    return query, values


def _readable(rows: Sequence[Any]) -> list[Expired]:
    """Return rows whose times can be read."""
    return [
        Expired(**row._mapping)
        for row in rows
        if not any(isinstance(value, UnreadableValue) for value in row)
    ]


def _are_young(rows: Sequence[Any], before: datetime) -> bool:
    """Whether most of these rows were made after ``before``, whatever a few of them say."""
    old = sum(
        not isinstance(row.created_at, UnreadableValue) and row.created_at < before for row in rows
    )
    return bool(old * _OLD_SHARE < len(rows))


def _among(column: Column[int]) -> ColumnElement[bool]:
    """Whether it is one of ``ids``, in one statement whatever their number."""
    return Among(column, numbers("ids"))


@dataclass(frozen=True)
class Deleted:
    """What a deletion has removed."""

    partitions: Mapping[int, int]  # of the rows, by their ids
    attempts: int
    events: int


def without_looked_for(
    expired: Sequence[Expired], since: Mapping[int, datetime], before: datetime, now: datetime
) -> list[Expired]:
    """Leave out runs that tasks which wait now may need.

    A task that waits for a day of last year needs runs of last year: their age counts from its
    own logical time, not from now.
    """
    kept_for: timedelta = now - before

    def is_looked_for(one: Expired) -> bool:
        earliest = since.get(one.workflow_id)
        return (
            earliest is not None
            and one.logical_time is not None
            and one.logical_time >= earliest - kept_for
        )

    return [one for one in expired if not is_looked_for(one)]
