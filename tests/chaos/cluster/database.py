"""Reads the evidence out of Shoal's database: plain SQL, nothing of Shoal's own code."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.chaos.cluster.queries import connected, instant
from tests.chaos.judging import audit
from tests.chaos.judging.evidence import (
    Attempt,
    Backfill,
    Change,
    Command,
    Evidence,
    Instance,
    Task,
    Version,
)
from tests.chaos.records import FaultRecord, now_s
from tests.chaos.workload.dags import HANDED_OVER, PASSING
from tests.chaos.workload.ledger import Row
from tests.chaos.workload.workload import Asked

_Fields = Mapping[str, Any]
_Clock = Callable[[datetime | int | None], float | None]


def gather(
    database_url: str,
    rows: Sequence[Row],
    faults: Sequence[FaultRecord],
    asked: Sequence[Asked],
    session_timeout_s: float,
) -> Evidence:
    """Return all evidence, the database's as one snapshot."""
    with connected(database_url, snapshot=True) as select:
        since_boot = _since_boot()
        instances = {row["id"]: _instance(row) for row in select(_INSTANCES)}
        nested = {one.parent: one.id for one in instances.values() if one.parent is not None}
        return Evidence(
            commands=[_command(row, since_boot, nested) for row in select(_COMMANDS)],
            instances=instances,
            attempts=[_attempt(row) for row in select(_ATTEMPTS)],
            changes=[_change(row, since_boot) for row in select(_CHANGES)],
            epochs={row["number"]: row["epoch"] for row in select(_EPOCHS)},
            steps=audit.read(database_url, select),
            slots={row["name"]: row["slots"] for row in select(_SLOTS)},
            backfills=_backfills(select(_BACKFILLS), select(_DATES)),
            versions=[_version(row) for row in select(_VERSIONS)],
            rows=rows,
            asked=asked,
            faults=faults,
            session_timeout_s=session_timeout_s,
        )


# Of the runs that are purged meanwhile nothing can be judged here: see history.py.
_JUDGED = f"""workflow_id NOT IN (SELECT w.id FROM workflow w JOIN project p ON p.id = w.project_id
    WHERE p.name = '{PASSING}')"""
_OF_JUDGED = f"workflow_instance_id IN (SELECT id FROM workflow_instance WHERE {_JUDGED})"
_COMMANDS = f"SELECT * FROM command WHERE {_JUDGED} ORDER BY id"
_INSTANCES = f"""
    SELECT i.*, v.spec, w.name AS workflow FROM workflow_instance i
    JOIN workflow_version v ON v.workflow_id = i.workflow_id AND v.version = i.version
    JOIN workflow w ON w.id = i.workflow_id WHERE i.{_JUDGED}"""
_ATTEMPTS = f"SELECT * FROM task_instance WHERE {_OF_JUDGED} ORDER BY id"
_CHANGES = f"""SELECT * FROM event WHERE kind IN ('instance.state', 'task.state')
    AND {_OF_JUDGED} ORDER BY id"""
_SLOTS = "SELECT name, slots FROM concurrency_group"
_BACKFILLS = "SELECT * FROM backfill ORDER BY id"
_DATES = "SELECT backfill_id, logical_time, state FROM backfill_run"
_EPOCHS = "SELECT number, epoch FROM partition"
_VERSIONS = f"""SELECT * FROM resource
    WHERE path LIKE '{HANDED_OVER}%' AND version IS NOT NULL ORDER BY path, version"""


def _since_boot() -> _Clock:
    """Return the conversion of the database's wall-clock times to seconds since boot."""
    offset_s = time.time() - now_s()

    def convert(stored: datetime | int | None) -> float | None:
        at = instant(stored)
        return None if at is None else at.timestamp() - offset_s

    return convert


def _command(row: _Fields, since_boot: _Clock, nested: Mapping[tuple[int, int], int]) -> Command:
    """``nested``: instances by their parent, as requests of a parent may name them."""
    logical_time, parent = instant(row["logical_time"]), _parent(row["parent"])
    instance_id = row["instance_id"]
    if instance_id is None and parent is not None and row["type"] != "START":
        instance_id = nested.get(parent)
    return Command(
        id=row["id"],
        type=row["type"],
        key=row["idempotency_key"],
        state=row["state"],
        instance_id=instance_id,
        result_instance_id=row["result_instance_id"],
        schedule_id=row["schedule_id"],
        logical_time=None if logical_time is None else logical_time.isoformat(),
        handled_s=since_boot(row["handled_at"]),
        by_parent=parent is not None,
    )


def _instance(row: _Fields) -> Instance:
    spec = json.loads(row["spec"])
    return Instance(
        id=row["id"],
        state=row["state"],
        partition=row["partition"],
        command_id=row["command_id"],
        strategy=spec.get("on_failure", "continue"),
        tasks={task["name"]: _task(task) for task in spec["tasks"]},
        workflow=row["workflow"],
        overlap=spec.get("overlap", "allow"),
        parent=_parent(row["parent"]),
        backfill=_backfill_of(row),
    )


def _parent(stored: str | None) -> tuple[int, int] | None:
    parent = None if stored is None else json.loads(stored)
    return None if parent is None else (parent["task_instance_id"], parent.get("index", 0))


def _backfill_of(row: _Fields) -> tuple[int, str] | None:
    if row["backfill_id"] is None:
        return None
    return row["backfill_id"], _date(row)


def _date(row: _Fields) -> str:
    at = instant(row["logical_time"])
    assert at is not None
    return at.isoformat()


def _backfills(rows: Sequence[_Fields], dates: Sequence[_Fields]) -> list[Backfill]:
    return [
        Backfill(
            id=row["id"],
            command_id=row["command_id"],
            state=row["state"],
            parallel=json.loads(row["request"]).get("parallel", 1),  # 1 is not stored
            dates={
                _date(date): date["state"] for date in dates if date["backfill_id"] == row["id"]
            },
        )
        for row in rows
    ]


def _task(spec: _Fields) -> Task:
    children = _children(spec)
    return Task(
        name=spec["name"],
        depends_on=tuple(spec.get("depends_on", ())),
        run_when=spec.get("run_when", "all_success"),
        enabled=spec.get("enabled", True),
        retries=spec.get("retries", 0),
        timeout=spec.get("timeout"),
        lines=0 if children is not None else _lines(spec),
        group=spec.get("concurrency_group"),
        children=children,
        hands_over=bool(spec.get("publish")),
    )


def _children(spec: _Fields) -> int | None:
    match spec["type"]:
        case "SUB_WORKFLOW":
            return 1
        case "MAP":
            return len(spec["params"]["items"])
    return None


def _lines(spec: _Fields) -> int:
    return int(json.loads(spec["params"]["arguments"][-1]).get("lines", 0))


def _attempt(row: _Fields) -> Attempt:
    return Attempt(
        id=row["id"],
        instance=row["workflow_instance_id"],
        task=row["task"],
        number=row["attempt"],
        state=row["state"],
        worker=row["worker"],
        exit_code=row["exit_code"],
        failures=row["failures"],
        losses=row["losses"],
        reason=row["reason"] or "",
    )


def _version(row: _Fields) -> Version:
    return Version(
        path=row["path"],
        number=row["version"],
        sha256=row["sha256"],
        object=row["object"],
        instance=row["instance_id"] or 0,
    )


def _change(row: _Fields, since_boot: _Clock) -> Change:
    data = json.loads(row["data"])
    at_s = since_boot(row["at"])
    assert at_s is not None
    return Change(
        id=row["id"],
        at_s=at_s,
        instance=row["workflow_instance_id"],
        state=data["state"],
        task=data.get("task"),
        attempt=data.get("attempt"),
        previous=data.get("previous"),
    )
