"""Commands over REST: sending them, and waiting for what becomes of them."""

import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, cast

from shoal.client.errors import NotHandled, Refused
from shoal.client.rest.connection import Connection
from shoal.client.rest.types import CommandJson

CommandTypeName: TypeAlias = Literal[
    "START",
    "RERUN",
    "PAUSE",
    "RESUME",
    "STOP",
    "RECOVER",
    "RERUN_TASKS",
    "KILL_TASK",
    "FORCE_SUCCESS",
]
ModeName: TypeAlias = Literal["only", "upstream", "downstream"]

LONG_POLL_S = 20.0  # the API allows 30


class CommandCalls:
    """The part of ``ShoalClient`` that changes what runs."""

    _connection: Connection

    def send(
        self, kind: CommandTypeName, *, idempotency_key: str | None = None, **fields: Any
    ) -> CommandJson:
        """Store a command. It is repeated safely if the answer gets lost."""
        key = idempotency_key or str(uuid.uuid4())
        body = {"type": kind, **{k: v for k, v in fields.items() if v is not None}}
        headers = {"Idempotency-Key": key}
        return cast(
            CommandJson, self._connection.json("POST", "/commands", json=body, headers=headers)
        )

    def command(self, command_id: int, wait_s: float = 0) -> CommandJson:
        """Return a command; waits up to ``wait_s`` (at most 30) until it is not PENDING."""
        query = {"wait": wait_s or None}
        return cast(CommandJson, self._connection.get(f"/commands/{command_id:d}", query))

    def outcome(self, command: CommandJson, timeout_s: float = 60.0) -> CommandJson:
        """Wait until a command is DONE or REFUSED. Raises NotHandled after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while command["state"] == "PENDING":
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise NotHandled(command["id"], timeout_s)
            command = self.command(command["id"], min(LONG_POLL_S, max(left_s, 0.1)))
        return command

    def started(self, command: CommandJson, timeout_s: float = 60.0) -> int:
        """Return the instance that a command has started. Raises Refused and NotHandled."""
        done = self.outcome(command, timeout_s)
        if done["result_instance_id"] is None:
            raise Refused(done["type"], done["reason"] or "no reason was given")
        return done["result_instance_id"]

    def start(
        self,
        project: str,
        workflow: str,
        *,
        version: int | None = None,
        parameters: Mapping[str, str] | None = None,
        logical_time: datetime | None = None,
        priority: str | None = None,
        tasks: Sequence[str] = (),
        mode: ModeName | None = None,
        idempotency_key: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> CommandJson:
        """Ask for a run of a workflow, or of some of its tasks and what ``mode`` adds to them."""
        return self.send(
            "START",
            project=project,
            workflow=workflow,
            version=version,
            parameters=dict(parameters or {}),
            logical_time=logical_time.isoformat() if logical_time else None,
            priority=priority,
            tasks=list(tasks) or None,
            mode=mode,
            idempotency_key=idempotency_key,
            labels=dict(labels) if labels else None,
        )

    def rerun_tasks(
        self, instance_id: int, tasks: Sequence[str], mode: ModeName | None = None
    ) -> CommandJson:
        """Ask for chosen tasks of an ended instance to run again, in the same instance."""
        return self.send("RERUN_TASKS", instance_id=instance_id, tasks=list(tasks), mode=mode)

    def kill_task(self, task_instance_id: int) -> CommandJson:
        """Ask for the end of one task; the others of its instance go on."""
        return self.send("KILL_TASK", task_instance_id=task_instance_id)

    def force_success(self, task_instance_id: int, reason: str | None = None) -> CommandJson:
        """Ask for a task that failed to be taken for a success."""
        return self.send("FORCE_SUCCESS", task_instance_id=task_instance_id, reason=reason)
