"""Read what has ended since a position, in pieces, as Arrow tables."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from shoal.core.runs.quarantine import QuarantinedItem
from shoal.core.untrusted import read_count, read_json
from shoal.insight.export.columns import UnreadableRow, arrow_of, labels_of, tasks_of
from shoal.insight.history.tables import (
    ATTEMPTS,
    COMMANDS,
    INSTANCES,
    PLANS,
    TAKEOVERS,
    HistoryTable,
)
from shoal.sql import Database, UnitOfWork
from shoal.sql.driver.connection import batched
from shoal.sql.repositories.exports.finished_rows import Ends, ExportedRows
from shoal.sql.repositories.exports.position import ExportPosition

T = TypeVar("T")

_FEW_IDS = 1_000  # rows that are read by their ids in one query
_FEW_PLANS = 20  # versions that are read at once: one may have 10,000 tasks
_MOST_PIECES = 256  # that an export has at most, however few rows they have
_MOST_NAMED = 100  # rows of a table and step that cannot be read; the others are only counted


@dataclass(frozen=True)
class Pieces:
    """How much is read at a time.

    ``step``: rows of one step of an export, more or less: some 100 MB while it is written.
    ``rows``: in one transaction, more or less: some ten milliseconds of the database.
    ``instances``: at first; the number follows from the attempts that they have. ``commands``: ids
    of commands and takeovers in one export. ``open_commands``: not handled yet, and read each time.
    """

    step: int = 200_000
    rows: int = 5_000
    instances: int = 50
    commands: int = 5_000
    open_commands: int = 10_000


PIECES = Pieces()


@dataclass
class Gathered:
    """What one export is made of. ``rows`` counts those of all tables.

    ``left_out``: how many rows could not be read, by table; ``unreadable`` names the first ones.
    ``retried``: quarantined items that were read once more.
    """

    position: ExportPosition
    tables: dict[HistoryTable, list[pa.Table]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, list[UnreadableRow]] = field(default_factory=dict)
    retried: Sequence[QuarantinedItem] = ()
    rows: int = 0

    def add(self, table: HistoryTable, columns: Mapping[str, Any]) -> None:
        """Add rows, given by columns."""
        made, left_out = arrow_of(table, columns)
        if made.num_rows:
            self.tables.setdefault(table, []).append(made)
            self.rows += made.num_rows
        if left_out:
            self.left_out[table.name] = self.left_out.get(table.name, 0) + len(left_out)
            named = self.unreadable.setdefault(table.name, [])
            named += left_out[: _MOST_NAMED - len(named)]

    def exported(self, items: Iterable[str]) -> set[str]:
        """Return those of these quarantined items, a table and an id each, whose rows are here."""
        numbers: dict[str, set[int]] = {}
        for item in items:
            name, _, key = item.partition(" ")
            if (number := read_count(key)) is not None and number < 1 << 63:
                numbers.setdefault(name, set()).add(number)
        found = set()
        for table, pieces in self.tables.items():
            wanted = pa.array(sorted(numbers.get(table.name, ())), pa.int64())
            for piece in pieces if len(table.key) == 1 and len(wanted) else ():
                ids = piece[table.key[0]]
                here = ids.filter(pc.is_in(ids, value_set=wanted))
                found |= {f"{table.name} {number}" for number in here.to_pylist()}
        return found


class Gatherer:
    """Reads finished rows from a database.

    ``share``: the part of the time in which it may have the database at work, 0 to 1.
    """

    def __init__(self, database: Database, share: float, pieces: Pieces) -> None:
        self._database, self._share, self._pieces = database, share, pieces
        self._instances_at_once = pieces.instances  # grows and shrinks with their attempts

    async def ends(self) -> Ends:
        """Return the highest ids; all rows up to these are seen, or never will be, from now on."""
        ends = await self._read(lambda uow: uow.finished_rows.ends())
        _, following = await self._read(lambda uow: uow.finished_rows.running_since())
        while following:
            oldest, _ = await self._read(lambda uow: uow.finished_rows.running_since())
            if oldest >= following:
                break
            await asyncio.sleep(0.05)
        # Read behind the others: what those transactions have made and ended at once is below it,
        # and so is found by its id; what came later has events of its own.
        later = await self._read(lambda uow: uow.finished_rows.ends())
        return replace(ends, instance=later.instance)

    async def gather(self, position: ExportPosition, ends: Ends) -> Gathered:
        """Return what comes next behind ``position``: a step, or all up to ``ends``."""
        found = Gathered(position)
        for _ in range(_MOST_PIECES):
            at = found.position
            if found.rows >= self._pieces.step or (
                at.instances >= at.instances_end and at.event >= ends.event
            ):
                break
            if at.instances < at.instances_end:
                await self._add_old(found)
            else:
                await self._add_changed(found, min(ends.event, at.event + self._pieces.rows))
        await self._add_commands(found, ends.command)
        await self._add_takeovers(found, ends.takeover)
        return found

    async def gather_again(
        self, position: ExportPosition, items: Sequence[QuarantinedItem]
    ) -> Gathered:
        """Return rows that were quarantined, as they are now; the position stays.

        ``items`` name a table and a key. A row that is no longer in the database is left out.
        """
        found = Gathered(position, retried=items)
        for item in items:
            table, _, key = item.item.partition(" ")
            before = found.rows, found.left_out.get(table, 0)
            await self._add_again(found, table, read_count(key.partition(" ")[0]), item)
            if before == (found.rows, found.left_out.get(table, 0)):
                gone = UnreadableRow(
                    key,
                    "the row has not ended again, or is no longer in the database",
                    item.project,
                    item.workflow,
                )
                found.left_out[table] = found.left_out.get(table, 0) + 1
                found.unreadable.setdefault(table, []).append(gone)
        return found

    async def _add_again(
        self, found: Gathered, table: str, number: int | None, item: QuarantinedItem
    ) -> None:
        event = found.position.event  # above that of every row that was exported before
        if table == PLANS.name:
            await self._add_plan_again(found, item)
        elif number is None:
            return
        elif table == INSTANCES.name:
            await self._add_instances(found, [number], {number: event})
        elif table == ATTEMPTS.name:
            await self._add_attempts(found, [number], {number: event})
        elif table == COMMANDS.name:
            self._add_handled(found, await self._commands_of([number]))
        elif table == TAKEOVERS.name:
            await self._add_takeovers_between(found, number - 1, number)

    async def _add_plan_again(self, found: Gathered, item: QuarantinedItem) -> None:
        project, workflow = item.project, item.workflow
        version = read_count(item.item.rsplit(" ", 2)[-2])  # before the time of its publication
        if project is None or workflow is None or version is None:
            return
        number = await self._read(lambda uow: uow.finished_rows.workflow_id(project, workflow))
        if number is not None:
            await self._add_versions(found, number, version - 1, version)

    async def _add_old(self, found: Gathered) -> None:
        """Add instances that there were when the export began, by their ids."""
        at = found.position
        until = min(at.instances_end, at.instances + self._instances_at_once)

        async def read(uow: UnitOfWork) -> tuple[ExportedRows, ExportedRows]:
            rows = uow.finished_rows
            return (
                await rows.instances_between(at.instances, until),
                await rows.attempts_between(at.instances, until),
            )

        instances, attempts = await self._read(read)
        size = max(len(attempts.values) + len(instances.values), 1)
        wanted = self._instances_at_once * self._pieces.rows // size
        self._instances_at_once = max(
            1, min(wanted, 2 * self._instances_at_once, self._pieces.rows)
        )
        await self._add(found, instances, attempts, lambda _: at.event)
        found.position = replace(found.position, instances=until)

    async def _add_changed(self, found: Gathered, until: int) -> None:
        """Add what events up to ``until`` are about."""
        after = found.position.event
        changed = await self._read(lambda uow: uow.finished_rows.changed(after, until))
        for few in batched(sorted(changed.instances), _FEW_IDS):
            await self._add_instances(found, few, changed.instances)
        for few in batched(sorted(changed.attempts), _FEW_IDS):
            await self._add_attempts(found, few, changed.attempts)
        found.position = replace(found.position, event=until)

    async def _add_instances(
        self, found: Gathered, ids: Sequence[int], events: Mapping[int, int]
    ) -> None:
        instances = await self._read(lambda uow: uow.finished_rows.instances_of(ids))
        await self._add(found, instances, None, events.__getitem__)

    async def _add_attempts(
        self, found: Gathered, ids: Sequence[int], events: Mapping[int, int]
    ) -> None:
        attempts = await self._read(lambda uow: uow.finished_rows.attempts_of(ids))
        await self._add(found, None, attempts, events.__getitem__)

    async def _add(
        self,
        found: Gathered,
        instances: ExportedRows | None,
        attempts: ExportedRows | None,
        event_of: Callable[[int], int],
    ) -> None:
        if attempts is not None and attempts.values:
            columns = attempts.columns()
            columns["event_id"] = [event_of(one) for one in columns["attempt_id"]]
            found.add(ATTEMPTS, columns)
        if instances is not None and instances.values:
            columns = instances.columns()
            ids = columns["instance_id"]
            labels = await self._read(lambda uow: uow.finished_rows.labels_of(ids))
            columns["labels"] = [labels_of(labels.get(one, {})) for one in ids]
            columns["event_id"] = [event_of(one) for one in ids]
            columns["parent_instance_id"] = [_parent(one) for one in columns.pop("parent")]
            found.add(INSTANCES, columns)
            await self._add_plans(found, columns["workflow_id"], columns["version"])

    async def _add_plans(
        self, found: Gathered, workflows: Sequence[int], versions: Sequence[int]
    ) -> None:
        """Add the plans of versions that have run, and of those before them."""
        newest: dict[int, int] = {}
        for workflow, version in zip(workflows, versions, strict=True):
            newest[workflow] = max(version, newest.get(workflow, 0))
        plans = dict(found.position.plans)
        for workflow, version in newest.items():
            known = plans.get(workflow, 0)
            if version <= known:
                continue
            for first in range(known, version, _FEW_PLANS):
                last = min(version, first + _FEW_PLANS)
                await self._add_versions(found, workflow, first, last)
            plans[workflow] = version
        found.position = replace(found.position, plans=plans)

    async def _add_versions(self, found: Gathered, workflow: int, after: int, until: int) -> None:
        rows = await self._read(lambda uow: uow.finished_rows.plans_of(workflow, after, until))
        columns = rows.columns()
        columns["tasks"] = [tasks_of(spec) for spec in columns.pop("spec")]
        # Another workflow may get the name of one that was renamed, and begins with 1 again.
        columns["event_id"] = columns["published_at"]
        found.add(PLANS, columns)

    async def _add_commands(self, found: Gathered, end: int) -> None:
        """Add commands that were handled; what was not is remembered, and looked at again."""
        at = found.position
        room = self._pieces.open_commands - len(at.open_commands)
        until = min(end, at.command + min(self._pieces.commands, room))
        still_open: list[int] = []
        for few in batched(at.open_commands, _FEW_IDS):
            still_open += self._add_handled(found, await self._commands_of(few))
        if until > at.command:
            rows = await self._read(
                lambda uow: uow.finished_rows.commands_between(at.command, until)
            )
            still_open += self._add_handled(found, rows)
        found.position = replace(
            found.position, command=max(until, at.command), open_commands=tuple(still_open)
        )

    async def _commands_of(self, ids: Sequence[int]) -> ExportedRows:
        return await self._read(lambda uow: uow.finished_rows.commands_of(ids))

    @staticmethod
    def _add_handled(found: Gathered, rows: ExportedRows) -> list[int]:
        """Add the commands that were handled; return the ids of the others."""
        columns = rows.columns()
        is_open = [at is None for at in columns["handled_at"]]
        ids = columns["command_id"]
        columns["event_id"] = ids
        handled = {
            name: [one for one, is_left in zip(values, is_open, strict=True) if not is_left]
            for name, values in columns.items()
        }
        if handled["command_id"]:
            found.add(COMMANDS, handled)
        return [one for one, is_left in zip(ids, is_open, strict=True) if is_left]

    async def _add_takeovers(self, found: Gathered, end: int) -> None:
        after = found.position.takeover
        until = min(end, after + self._pieces.commands)
        if until > after:
            await self._add_takeovers_between(found, after, until)
            found.position = replace(found.position, takeover=until)

    async def _add_takeovers_between(self, found: Gathered, after: int, until: int) -> None:
        rows = await self._read(lambda uow: uow.finished_rows.takeovers_between(after, until))
        columns = rows.columns()
        columns["event_id"] = columns["takeover_id"]
        if rows.values:
            found.add(TAKEOVERS, columns)

    async def _read(self, read: Callable[[UnitOfWork], Awaitable[T]]) -> T:
        """Read in a transaction of its own, and let the database do other work for a while."""
        began = time.monotonic()
        async with self._database.unit_of_work(read_only=True) as uow:
            found = await read(uow)
        took = time.monotonic() - began
        if self._share < 1:
            await asyncio.sleep(took * (1 / self._share - 1))
        return found


def _parent(stored: str | None) -> int | None:
    if stored is None:
        return None
    try:
        return int(read_json(stored)["instance_id"])
    except (ValueError, KeyError, TypeError):
        return None
