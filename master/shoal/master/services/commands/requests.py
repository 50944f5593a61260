"""Requests about one run: each becomes an event for the engine.

Those about one run are carried out in the order in which they were accepted, up to one that has to
be repeated. The children of a MAP do not wait for each other. Messages to a quarantined run wait
until it is tried again; requests of users overtake them, because a recovery is what ends the wait.
"""

from collections.abc import Collection, Hashable
from dataclasses import replace
from datetime import datetime
from typing import Any

import structlog

from shoal.core.errors import ShoalError
from shoal.core.runs.commands import Command, CommandState, CommandType
from shoal.core.runs.events import OF_WHOLE, Admitted, ChildChanged, Request, request_of
from shoal.core.runs.quarantine import ItemKind
from shoal.master.engine import messages
from shoal.master.errors import Quarantined
from shoal.master.services import admission
from shoal.master.services.commands.outcomes import CommandOutcomes
from shoal.master.services.service import MasterContext, is_passing
from shoal.sql.errors import NotFound, UnreadableRow

log = structlog.get_logger()

REQUESTS = frozenset(
    {*OF_WHOLE, CommandType.STOP, CommandType.ADMIT, CommandType.CHILD}
    | {CommandType.RERUN_TASKS, CommandType.KILL_TASK, CommandType.FORCE_SUCCESS}
)
_WITHDRAWN = "its parent was stopped while it was quarantined"
# Senders of commands that are not requests of people: they must not be refused while their
# instance is quarantined, or the senders would wait for ever.
_INTERNAL = frozenset({messages.REQUESTED_BY, admission.REQUESTED_BY, "backfill"})


class RunRequests:
    """Routes the requests of one master's partitions to its engine."""

    def __init__(self, context: MasterContext, outcomes: CommandOutcomes) -> None:
        self._database, self._engine, self._clock = context.database, context.engine, context.clock
        self._outcomes = outcomes
        self.waiting: set[int] = set()  # commands for quarantined instances

    async def lines(self, commands: Collection[Command]) -> list[list[Command]]:
        """Return the commands as lists, each to be carried out in its order."""
        started: dict[str, Command] = {}
        damaged: dict[str, UnreadableRow] = {}
        if keys := {key for command in commands if (key := _start_key(command)) is not None}:
            async with self._database.unit_of_work(read_only=True) as uow:
                started = await uow.commands.sent(keys, damaged)
        lines: dict[Hashable, list[Command]] = {}
        for command in commands:
            key = _start_key(command) or ""
            if (row := damaged.get(key)) is not None:
                if not self._is_quarantined(row.key):  # it is not pending: it may have a child
                    self._outcomes.quarantine(command.id, command.partition, row)
                    continue
                if not await self._withdraws(command, row.key):
                    continue
            elif (start := started.get(key)) is not None:
                if start.state is CommandState.PENDING and not (
                    self._is_quarantined(start.id) and await self._withdraws(command, start.id)
                ):
                    continue  # it comes after the start
                command = replace(command, instance_id=start.result_instance_id)
            try:
                lines.setdefault(_line_of(command), []).append(command)
            except Exception as error:  # noqa: BLE001 - its row holds what no request is
                self._outcomes.quarantine(command.id, command.partition, error)
        return list(lines.values())

    def _is_quarantined(self, command_id: object) -> bool:
        return self._engine.quarantine.holds(ItemKind.COMMAND, command_id)

    async def _withdraws(self, request: Command, start_id: Any) -> bool:
        """Refuse a quarantined START if a request is to stop its child; return whether it is.

        The parent's stop would wait for it, and a later retry would start a child of a run that
        has ended. Raises what ``is_passing``.
        """
        if request.type is not CommandType.STOP:
            return False
        try:
            await self._outcomes.refuse(replace(request, id=start_id), _WITHDRAWN)
        except Exception as error:
            if is_passing(error):
                raise
            self._outcomes.quarantine(request.id, request.partition, error)
            return False
        self._engine.quarantine.passed(ItemKind.COMMAND, start_id)
        return True

    async def carry_out(self, line: Collection[Command]) -> None:
        """Carry out commands one after the other, up to one that has to be repeated."""
        is_held = False  # the run is quarantined: messages to it wait
        for command in line:
            if is_held and command.requested_by in _INTERNAL:
                self.waiting.add(command.id)
                continue
            if is_held and not self._engine.quarantine.holds(
                ItemKind.INSTANCE, command.instance_id
            ):
                return  # it is tried again: the messages are due first, in their order
            try:
                if not await self._request(command):
                    return
            except Quarantined:
                is_held = True
                self.waiting.add(command.id)  # until the instance goes on
            except Exception as error:
                if is_passing(error):
                    raise
                self._outcomes.quarantine(command.id, command.partition, error)
                return

    async def _request(self, command: Command) -> bool:
        """Carry out a command about an instance; False: it could not be stored.

        Raises Quarantined if it is a message, which has to wait.
        """
        if command.instance_id is None:
            await self._outcomes.refuse(command, "its sub-workflow was not started")
            return True
        try:
            event = _event(command, self._clock())
        except Exception as error:  # noqa: BLE001 - its row holds what no request is
            self._outcomes.quarantine(command.id, command.partition, error)
            return False
        try:
            await self._engine.submit(command.partition, command.instance_id, event, command)
        except Quarantined as error:
            if command.requested_by in _INTERNAL:
                raise
            await self._outcomes.refuse(command, str(error))
        except NotFound as error:
            await self._outcomes.refuse(command, str(error))
        except ShoalError as error:
            log.warning(
                "request not stored; the next scan repeats it", command=command.id, error=str(error)
            )
            return False
        self.waiting.discard(command.id)
        self._engine.quarantine.passed(ItemKind.COMMAND, command.id)
        return True


def _start_key(command: Command) -> str | None:
    """Return the key of the START whose instance a request is about; None if it names one."""
    if command.instance_id is not None or command.parent is None:
        return None
    return messages.start_key(command.parent)


def _line_of(command: Command) -> Hashable:
    """Return the key of the commands among which this one keeps its order."""
    if command.type is CommandType.CHILD:  # the children of a MAP need not wait for each other
        return command.instance_id, command.detail["task_instance_id"], command.detail["index"]
    return command.instance_id or command.id


def _event(command: Command, now: datetime) -> Request | Admitted | ChildChanged:
    """Return the event of a command about an instance."""
    match command.type:
        case CommandType.CHILD:
            return messages.child_event(command, now)
        case CommandType.ADMIT:
            return Admitted(now)
        case _:
            return request_of(command, now)
