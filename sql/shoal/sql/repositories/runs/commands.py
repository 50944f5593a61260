"""Commands: the durable requests.

Callers choose the keys of their commands, Shoal makes those of its own; both stand in one unique
column. Those of Shoal begin with a character that no caller's key may hold, so they never meet.
Only this module writes and strips it.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    bindparam,
    func,
    literal_column,
    select,
    union_all,
    update,
)

from shoal.core.runs.commands import Command, CommandState, CommandType, NewCommand, Parent
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.records import PendingCommand
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import InvalidValue, KeyTaken, NotFound, StaleRow, UnreadableRow
from shoal.sql.schema.tables import (
    IS_NO_START,
    IS_PENDING,
    IS_PENDING_REQUEST,
    IS_START,
    command,
    project,
    workflow,
)
from shoal.sql.statements.json_columns import (
    check_texts,
    id_and_parent,
    parent_json,
    parent_of,
    selection_json,
    selection_of,
)
from shoal.sql.statements.quarantined import is_quarantined
from shoal.sql.statements.rows import OnUnreadable, leave_out, readable, record_of, refuse
from shoal.sql.statements.value_sets import Among, numbers

_IDS_PER_QUERY = 500
_MAX_KEY = 255
_OWN, _CALLER = "\x1f", "\x1e"  # revision 0004 knows it too
# What is the same in every repetition of one of Shoal's own commands. Other fields may change in
# between: a schedule that is published anew has other parameters.
_IDENTITY = attrgetter(
    "type", "workflow_id", "instance_id", "schedule_id", "backfill_id", "logical_time", "parent"
)
# The columns to set are those that the rows of values name.
_SETTLE = update(command).where(command.c.id == bindparam("row_id"), IS_PENDING)
_BY_ID = select(command).where(command.c.id == bindparam("id"))


def _oldest(kind: ColumnElement[bool], number: str, limit: str) -> Select[Any]:
    """Return the query for the oldest pending commands of a kind, each by its own index."""
    found = (
        select(command, literal_column(number).label("is_other"))
        .where(IS_PENDING, kind, Among(command.c.partition, numbers("among")))
        .order_by(command.c.id)
        .limit(bindparam(limit))
    )
    return select(found.subquery())


def _in_turn() -> Select[Any]:
    """Return the query for pending starts, the oldest of each project before the next ones."""
    c = command.c
    ranked = (
        select(
            c.id,
            project.c.name.label("project"),
            func.row_number()
            .over(partition_by=workflow.c.project_id, order_by=c.id)
            .label("place"),
        )
        .join(workflow, workflow.c.id == c.workflow_id)
        .join(project, project.c.id == workflow.c.project_id)
        .where(IS_PENDING, IS_START, Among(c.partition, numbers("among")))
        .subquery()
    )
    first = select(ranked).order_by(ranked.c.place, ranked.c.id).limit(bindparam("most")).subquery()
    return (
        select(command, first.c.project)
        .join(first, first.c.id == command.c.id)
        .order_by(first.c.place, first.c.id)
    )


_IN_TURN = _in_turn()
_IS_CHILD_START = command.c.type == CommandType.START
# Starts of children and requests are read apart: whatever is asked of a run, a stop above all, does
# not stand in line behind the children that it is about to get.
_PENDING = union_all(
    _oldest(IS_START, "0", "most_starts"),
    _oldest(IS_NO_START & ~_IS_CHILD_START, "1", "most_others"),
    _oldest(IS_NO_START & _IS_CHILD_START, "1", "most_others"),
)

_Outcome = tuple[int, int | None, str | None]  # command id, result instance id, reason


class Commands:
    """The ``command`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(self, new: NewCommand, at: datetime) -> tuple[Command, bool]:
        """Accept a caller's command; return it and True.

        If a caller's with the same idempotency key is there already, return that and False.
        """
        return (await self.add_many([new], at))[0]

    async def add_many(self, new: Sequence[NewCommand], at: datetime) -> list[tuple[Command, bool]]:
        """Accept several callers' commands, each as ``add`` does; ids ascend in their order."""
        if any({_OWN, _CALLER} & set(one.idempotency_key) for one in new):
            raise InvalidValue("an idempotency key must not contain control characters")
        keys = [caller_key(one.idempotency_key, one.caller_id) for one in new]
        return await self._add(keys, new, at)

    async def send_many(self, new: Sequence[NewCommand], at: datetime) -> list[Command]:
        """Store Shoal's own commands; one that is there already is returned as it is.

        Raises KeyTaken if the key belongs to a command with another purpose: then this one was not
        sent.
        """
        stored = await self._add([own_key(one.idempotency_key) for one in new], new, at)
        for wanted, (found, is_new) in zip(new, stored, strict=True):
            if not is_new and _IDENTITY(found) != _IDENTITY(wanted):
                raise KeyTaken(wanted.idempotency_key, found.id)
        return [found for found, _ in stored]

    async def _add(
        self, keys: Sequence[str], new: Sequence[NewCommand], at: datetime
    ) -> list[tuple[Command, bool]]:
        if not new:
            return []
        if not all(0 < len(key) <= _MAX_KEY for key in keys):
            raise InvalidValue(f"an idempotency key must have 1 to {_MAX_KEY} characters")
        [ids] = await self._connection.reserve_ids({command: len(new)})
        rows = [_values(*one, at) for one in zip(new, keys, ids, strict=True)]
        inserted = await self._connection.insert_new(command, ["idempotency_key"], rows)
        if inserted == len(rows):
            return [
                (Command(**vars(one), id=row_id, created_at=at), True)
                for one, row_id in zip(new, ids, strict=True)
            ]
        stored = await self._by_keys(keys)
        return [
            (stored[key], stored[key].id == row_id) for key, row_id in zip(keys, ids, strict=True)
        ]

    async def sent(
        self, keys: Collection[str], damaged: dict[str, UnreadableRow] | None = None
    ) -> dict[str, Command]:
        """Return Shoal's own commands with these keys; those that are not there are missing.

        ``damaged`` gets what is wrong with those that cannot be read, by key. Without it the first
        one is raised.
        """
        bad: dict[str, UnreadableRow] | None = None if damaged is None else {}
        stored = {own_key(key): key for key in keys}
        found = await self._by_keys(stored, bad)
        if damaged is not None:
            damaged |= {stored[key]: error for key, error in (bad or {}).items()}
        return {one.idempotency_key: one for one in found.values()}

    async def _by_keys(
        self, keys: Collection[str], bad: dict[str, UnreadableRow] | None = None
    ) -> dict[str, Command]:
        found: dict[str, Command] = {}
        for chunk in batched(sorted(keys), _IDS_PER_QUERY):
            query = select(command).where(command.c.idempotency_key.in_(chunk))
            for row in await self._connection.rows(query):
                key = row.idempotency_key
                on_bad = refuse if bad is None else partial(bad.__setitem__, key)
                for one in readable([row], _command, "command", on_bad):
                    found[key] = one
        return found

    async def parents(self, ids: Collection[int]) -> dict[int, Parent]:
        """Return who the children of START commands are to work for, by id of the command.

        Other commands, and those without a readable parent, are missing.
        """
        c = command.c
        found: dict[int, Parent] = {}
        for chunk in batched(sorted(ids), _IDS_PER_QUERY):
            query = select(c.id, c.parent).where(
                c.id.in_(chunk), c.type == CommandType.START, c.parent.is_not(None)
            )
            rows = await self._connection.rows(query)
            found |= readable(rows, id_and_parent, "command", leave_out)
        return found

    async def asking_parents(self, instance_ids: Collection[int]) -> dict[int, Parent]:
        """Return who has asked instances for something last that is still pending, by instance.

        A task's new attempt takes a child over with its first request.
        """
        c = command.c
        found: dict[int, Parent] = {}
        for chunk in batched(sorted(instance_ids), _IDS_PER_QUERY):
            query = (
                select(c.instance_id.label("id"), c.parent)
                .where(IS_PENDING_REQUEST, c.instance_id.in_(chunk), c.parent.is_not(None))
                .order_by(c.id)
            )
            rows = await self._connection.rows(query)
            found |= readable(rows, id_and_parent, "command", leave_out)
        return found

    async def with_key(self, key: str, caller_id: int | None = None) -> Command | None:
        """Return the command of a caller that has this idempotency key, if there is one."""
        stored = caller_key(key, caller_id)
        return (await self._by_keys([stored])).get(stored)

    async def get(self, command_id: int) -> Command:
        """Return a command. Raises NotFound."""
        rows = await self._connection.fetch(_BY_ID, {"id": command_id})
        if not rows:
            raise NotFound("command", command_id)
        return readable(rows, _command, "command")[0]

    async def pending(
        self,
        partitions: Collection[int],
        most_starts: int,
        most_others: int,
        on_unreadable: OnUnreadable = refuse,
    ) -> tuple[list[Command], list[Command]]:
        """Return the oldest pending commands of these partitions: starts, and all others.

        Starts make an instance; those of sub-workflows are among the others: at most
        ``most_others`` of them, beside as many requests.
        ``on_unreadable`` gets those that count as read and are in neither list.
        """
        values = {"most_starts": most_starts, "most_others": most_others}
        rows = await self._connection.fetch(_PENDING, {"among": sorted(partitions), **values})
        found: tuple[list[Command], list[Command]] = ([], [])
        for row in sorted(rows, key=attrgetter("id")):
            found[row.is_other].extend(readable([row], _command, "command", on_unreadable))
        return found

    async def starts_in_turn(
        self,
        partitions: Collection[int],
        limit: int,
        on_unreadable: OnUnreadable = refuse,
    ) -> list[tuple[Command, str]]:
        """Return pending starts with their projects: of each its oldest, then its next one, ….

        It reads all that are pending: for a backlog, and not at every turn.
        """
        rows = await self._connection.fetch(_IN_TURN, {"among": sorted(partitions), "most": limit})
        return [
            (one, row.project)
            for row in rows
            for one in readable([row], _command, "command", on_unreadable)
        ]

    async def starts(self, partitions: Collection[int], limit: int) -> list[Command]:
        """Return the starts among ``pending``."""
        return (await self.pending(partitions, limit, 0))[0]

    async def requests(self, partitions: Collection[int], limit: int) -> list[Command]:
        """Return the others among ``pending``."""
        return (await self.pending(partitions, 0, limit))[1]

    async def backlog(self, partitions: Collection[int] | None = None) -> dict[int, int]:
        """Return how many commands are pending, by partition; None: of all partitions."""
        query = (
            select(command.c.partition, func.count().label("pending"))
            .where(IS_PENDING)
            .group_by(command.c.partition)
        )
        if partitions is not None:
            query = query.where(command.c.partition.in_(sorted(partitions)))
        return {row.partition: row.pending for row in await self._connection.rows(query)}

    async def overdue(
        self, before: datetime, full: Collection[int], limit: int
    ) -> list[PendingCommand]:
        """Return the oldest commands that were accepted before then and should not be pending.

        Left out is what is pending with good reason: starts in the partitions ``full``, whose
        masters hold as many instances as they may, and commands that are quarantined, or whose
        instance is.
        """
        c = command.c
        common = [
            IS_PENDING,
            c.created_at < before,
            ~is_quarantined(c.id, ItemKind.COMMAND),
            ~is_quarantined(c.instance_id, ItemKind.INSTANCE),
        ]
        columns = select(c.id, c.partition, c.created_at).order_by(c.id).limit(limit)
        others = columns.where(*common, IS_NO_START)
        starts = columns.where(*common, IS_START, c.partition.not_in(sorted(full)))
        found = [
            PendingCommand(row.id, row.partition, row.created_at)
            for query in (others, starts)
            for row in await self._connection.rows(query)
        ]
        return sorted(found, key=attrgetter("id"))[:limit]

    async def done(self, command_id: int, instance_id: int | None, at: datetime) -> None:
        """Mark a command as carried out; without an instance if it is about a backfill.

        Raises StaleRow if it is no longer pending.
        """
        await self.done_many([(command_id, instance_id)], at)

    async def done_many(self, outcomes: Sequence[tuple[int, int | None]], at: datetime) -> None:
        """Mark commands as carried out: (command id, result instance id) each. As ``done``."""
        await self._settle(CommandState.DONE, [(one, result, None) for one, result in outcomes], at)

    async def refuse(self, command_id: int, reason: str, at: datetime) -> None:
        """Mark a command as refused. Raises StaleRow if it is no longer pending."""
        await self.refuse_many([(command_id, reason)], at)

    async def refuse_many(self, outcomes: Sequence[tuple[int, str]], at: datetime) -> None:
        """Mark commands as refused: (command id, reason) each. As ``refuse``."""
        await self._settle(
            CommandState.REFUSED, [(one, None, reason) for one, reason in outcomes], at
        )

    async def _settle(
        self, state: CommandState, outcomes: Sequence[_Outcome], at: datetime
    ) -> None:
        if not outcomes:
            return
        values = {"state": state, "handled_at": at}
        rows = [
            {"row_id": one, "result_instance_id": result, "reason": reason, **values}
            for one, result, reason in sorted(outcomes, key=itemgetter(0))  # one order: no deadlock
        ]
        [settled] = await self._connection.change([(_SETTLE, rows)])
        if settled != len(rows):
            ids = {one for one, _, _ in outcomes}
            raise StaleRow("command", await self._settled_otherwise(outcomes, state, at) or ids)

    async def _settled_otherwise(
        self, outcomes: Sequence[_Outcome], state: CommandState, at: datetime
    ) -> set[int]:
        """Return the commands that do not have the outcome they should have been given."""
        c = command.c
        differing = {one for one, _, _ in outcomes}
        for chunk in batched(sorted(differing), _IDS_PER_QUERY):
            query = select(c.id, c.result_instance_id, c.reason).where(
                c.id.in_(chunk), c.state == state, c.handled_at == at
            )
            found = {tuple(row) for row in await self._connection.rows(query)}
            differing -= {outcome[0] for outcome in outcomes if outcome in found}
        return differing


def own_key(key: str) -> str:
    """Return how the key of one of Shoal's own commands is stored."""
    return _OWN + key


def caller_key(key: str, caller_id: int | None) -> str:
    """Return how the key of an account's command is stored; None: who has no account."""
    return key if caller_id is None else f"{_CALLER}{caller_id}{_CALLER}{key}"


def _shown_key(stored: str) -> tuple[str, int | None]:
    """Return a key as its caller knows it, and the caller's id."""
    if stored.startswith(_CALLER):
        _, caller_id, key = stored.split(_CALLER, 2)
        return key, int(caller_id)
    return stored.removeprefix(_OWN), None


def _values(new: NewCommand, key: str, row_id: int, at: datetime) -> dict[str, Any]:
    return {
        "id": row_id,
        "type": new.type,
        "partition": new.partition,
        "idempotency_key": key,
        "workflow_id": new.workflow_id,
        "instance_id": new.instance_id,
        "version": new.version,
        "parameters": new.parameters,
        "logical_time": new.logical_time,
        "timezone": new.timezone,
        "priority": new.priority,
        "schedule_id": new.schedule_id,
        "requested_by": new.requested_by,
        "selection": selection_json(new.selection),
        "task": new.task,
        "labels": dict(new.labels) or None,
        "parent": parent_json(new.parent),
        "backfill_id": new.backfill_id,
        "detail": dict(new.detail) or None,
        "state": CommandState.PENDING,
        "created_at": at,
    }


def _command(row: Row[Any]) -> Command:
    check_texts(row.parameters)
    check_texts(row.labels or {})
    key, caller_id = _shown_key(row.idempotency_key)
    return record_of(
        Command,
        row,
        type=CommandType(row.type),
        idempotency_key=key,
        caller_id=caller_id,
        selection=selection_of(row.selection),
        labels=row.labels or {},
        parent=parent_of(row.parent),
        detail=row.detail or {},
        state=CommandState(row.state),
    )
