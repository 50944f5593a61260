"""Results of jobs in the database, for tests of what reads them."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import delete, insert, select, update

from shoal.insight.serving.blocks import Aggregates, aggregate_blocks
from shoal.insight.serving.results import RESULTS
from shoal.sql import Database
from shoal.sql.repositories.insight.batches import ARE_AGGREGATES, NewBlock
from shoal.sql.schema.tables import rollup, rollup_day
from shoal.sql.schema.types import JsonText

Rows = Sequence[Mapping[str, Any]]
Blocks = Mapping[tuple[str, str], Rows]
NOW = datetime(2026, 2, 1, 1, tzinfo=UTC)
DAY = date(2026, 1, 31)  # a Saturday
CLUSTER = ("", "")
_SPREADS = ("p50", "p95", "p99", "mean", "max")


async def store(
    database: Database,
    job: str,
    day: date,
    blocks: Blocks,
    at: datetime = NOW,
    *,
    with_aggregates: bool = True,
) -> None:
    """Let these rows be the result of a job for a day, as the loader does it.

    Not ``with_aggregates``: as an older version has done it.
    """
    some = [NewBlock(*name, 0, _body(rows)) for name, rows in blocks.items()]
    if with_aggregates and (aggregation := RESULTS[job].aggregation) is not None:
        aggregates = Aggregates(aggregation)
        for name in sorted(blocks):
            aggregates.add(name, blocks[name])
        some += aggregate_blocks(aggregates)
    async with database.unit_of_work() as uow:
        before = await uow.rollup_batches.counting(job, day)
        batch = await uow.rollup_batches.begin(job, day, at, before)
        await uow.commit()
    async with database.unit_of_work() as uow:
        await uow.rollup_batches.add(batch, some, at)
        await uow.commit()
    async with database.unit_of_work() as uow:
        rows = sum(map(len, blocks.values()))
        await uow.rollup_batches.publish(batch, f"digest {batch.id}", rows, at)
        await uow.commit()


def _body(rows: Rows) -> str:
    """Return rows as the loader writes them, if all have the same columns; else as objects."""
    columns = [*rows[0]] if rows else []
    if any([*row] != columns for row in rows):
        return json.dumps(rows)
    return json.dumps([columns, *([*row.values()] for row in rows)])


async def add(database: Database, job: str, day: date, blocks: Blocks) -> None:
    """Add rows of more workflows to the result of a job for a day; the first ones make it."""
    found = rollup_day.c.job == job, rollup_day.c.day == day.isoformat()
    async with database.unit_of_work() as uow:
        batch = await uow.connection.scalar(select(rollup_day.c.batch).where(*found))
        if batch is not None:
            await uow.connection.execute(
                delete(rollup).where(rollup.c.batch == batch, ARE_AGGREGATES)
            )
            for (project, workflow), rows in blocks.items():
                values = {"batch": batch, "project": project, "workflow": workflow, "place": 0}
                body = JsonText(json.dumps(rows))
                await uow.connection.execute(insert(rollup).values(**values, body=body))
            digest = f"digest with {project}/{workflow}"
            more = rollup_day.c.rows + sum(map(len, blocks.values()))
            changed = update(rollup_day).where(*found).values(digest=digest, rows=more)
            await uow.connection.execute(changed)
            await uow.commit()
            return
    await store(database, job, day, blocks)


def spread(name: str, value: float | None, *, p95: float | None = None) -> dict[str, Any]:
    """Return the columns of the percentiles of something."""
    found: dict[str, Any] = dict.fromkeys((f"{name}_{one}" for one in _SPREADS), value)
    return found | ({} if p95 is None else {f"{name}_p95": p95})


def workflow_day(runs: int = 1, duration: float | None = 60.0, **more: Any) -> dict[str, Any]:
    """Return a row of ``workflow_days``."""
    triggers = ("schedule", "backfill", "parent", "rerun", "request")
    return {
        "runs": runs,
        "succeeded": runs - more.get("failed", 0),
        "failed": 0,
        "stopped": 0,
        **{f"by_{name}": runs if name == "schedule" else 0 for name in triggers},
        "late": 0,
        **spread("duration", duration),
        **spread("admission", 0.5),
        **{f"critical_{one}": duration for one in ("p50", "p95", "mean", "max")},
        **more,
    }


def task_day(task: str = "fetch", attempts: int = 1, **more: Any) -> dict[str, Any]:
    """Return a row of ``task_days``."""
    counts = dict.fromkeys(("failed", "lost", "killed", "skipped", "rescheduled", "retries"), 0)
    return {
        "task": task,
        "type": "SHELL",
        "attempts": attempts,
        "succeeded": attempts,
        **counts,
        **spread("duration", 30.0),
        **spread("wait", 1.0),
        "busy_s": 30.0 * attempts,
        "cpu_s": 20.0 * attempts,
        "max_rss_kb": 10_000,
        **more,
    }


def cost(
    task: str = "fetch", slot_s: float = 30.0, label: str = "", value: str = ""
) -> dict[str, Any]:
    """Return a row of ``costs``."""
    return {
        "task": task,
        "label": label,
        "value": value,
        "attempts": 1,
        "cpu_s": slot_s / 2,
        "memory_gb_s": slot_s / 10,
        "slot_s": slot_s,
    }


def failure(task: str = "fetch", fingerprint: str = "f1", **more: Any) -> dict[str, Any]:
    """Return a row of ``failures``."""
    return {
        "fingerprint": fingerprint,
        "task": task,
        "sample": "it broke",
        "count_day": 1,
        "count": 3,
        "first_seen": "2026-01-02T03:04:05.000000Z",
        "last_seen": "2026-01-31T03:04:05.000000Z",
        **more,
    }


def baseline(
    task: str = "", p50: float = 60.0, weekday: int = -1, hour: int = -1, **more: Any
) -> dict[str, Any]:
    """Return a row of ``baselines``."""
    return {
        "task": task,
        "weekday": weekday,
        "hour": hour,
        "n": 30,
        "p50_s": p50,
        "p95_s": p50 * 1.2,
        "mad_s": p50 * 0.05,
        "late_after_s": p50 * 1.8,
        "wait_n": 30,
        "wait_p50_s": 1.0,
        "wait_p95_s": 3.0,
        "wait_mad_s": 0.2,
        **more,
    }


def move(place: int = 1, schedule_id: int = 7) -> dict[str, Any]:
    """Return a row of ``schedule_moves``."""
    return {
        "place": place,
        "schedule_id": schedule_id,
        "minute": 120,
        "move_min": 3,
        "starts_per_day": 1.0,
        "highest_before": 44.0,
        "highest_after": 41.0,
    }


#: Rows of every result that is of workflows, for one workflow.
EVERY: Mapping[str, Rows] = {
    "workflow_days": [workflow_day()],
    "task_days": [task_day()],
    "critical_days": [
        {
            "task": "fetch",
            "runs": 1,
            "runs_of_day": 1,
            "own_p50_s": 30.0,
            "own_mean_s": 30.0,
            "gain_mean_s": 30.0,
            "gain_max_s": 30.0,
            "gain_sum_s": 30.0,
        }
    ],
    "costs": [cost(), cost(label="team", value="hidden")],
    "failures": [failure()],
    "flapping": [
        {
            "task": "fetch",
            "runs": 20,
            "changes": 3,
            "failed_rate": 0.1,
            "retried_rate": 0.05,
            "last_seen": "2026-01-31T03:04:05.000000Z",
        }
    ],
    "baselines": [baseline(), baseline("fetch"), baseline("report")],
    "baseline_errors": [
        {
            "runs": 7,
            "error_p50_s": 3.0,
            "error_share_p50": 0.05,
            "within_p95": 0.95,
            "late_share": 0.0,
        }
    ],
    "schedule_moves": [move()],
}
#: Rows of every result that is of no project.
OF_CLUSTER: Mapping[str, Rows] = {
    "worker_days": [
        {
            "worker": "w-1",
            "attempts": 5,
            "failed": 1,
            "lost": 0,
            "busy_s": 3600.0,
            "hours": 2,
            "slots": 2,
            "utilisation": 0.25,
        }
    ],
    "concurrency_hours": [
        {
            "hour": 2,
            "worker_group": "default",
            "running_mean": 4.0,
            "running_max": 9,
            "waiting_mean": 1.0,
            "waiting_max": 3,
            "needed_max": 11,
        }
    ],
    "capacity": [
        {
            "forecast_day": "2026-02-01",
            "hour": 2,
            "worker_group": "default",
            "slots": 12,
            "expected": 10.0,
            "tested_hours": None,
            "error_p50": None,
            "within_p95": None,
        }
    ],
    "schedule_minutes": [
        {
            "scope": "day",
            "minute": 120,
            "starts_mean": 40.0,
            "starts_max": 44,
            "skew_p50_s": 0.4,
            "skew_p95_s": 12.0,
            "skew_max_s": 30.0,
            "is_hot": True,
        }
    ],
}


async def stock(database: Database, project: str, workflow: str = "daily") -> None:
    """Add rows of a workflow to every result of ``DAY``."""
    for job, rows in EVERY.items():
        await add(database, job, DAY, {(project, workflow): rows})


async def stock_cluster(database: Database) -> None:
    """Make the results of ``DAY`` that are of no project."""
    for job, rows in OF_CLUSTER.items():
        await store(database, job, DAY, {CLUSTER: rows})
