"""Weeks of made-up results of jobs, as those of a real cluster could look: for pages and pictures.

Three projects of a dozen workflows. One task has grown slower for three weeks, one failure came in
a burst and one is always there, nights are full, Sundays are quiet. All of it follows from a seed.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from shoal.sql import Database
from tests.support.insight.rollups import CLUSTER, Rows, baseline, cost, move, store

Name = tuple[str, str]  # project and workflow


class Task(NamedTuple):
    """A task: median seconds, tasks before it, share of attempts that fail, type, memory."""

    seconds: float
    after: Sequence[str] = ()
    fails: float = 0.0
    type: str = "SHELL"
    memory_kb: int = 180_000
    group: str = "default"


@dataclass(frozen=True)
class Workflow:
    """``runs`` a day on average; ``late_s``: deadline after the start."""

    runs: float
    tasks: Mapping[str, Task]
    late_s: float | None = None
    labels: Sequence[tuple[str, str]] = ()
    wait_s: float = 0.4
    admission_s: float = 0.1


_LOADS = ("load_eu", "load_us", "load_asia")
WORKFLOWS: Mapping[Name, Workflow] = {
    ("flights", "nightly"): Workflow(
        3.1,
        {
            "fetch": Task(95, fails=0.03),
            "check": Task(14, ("fetch",)),
            "load_eu": Task(210, ("check",), type="SQL"),
            "load_us": Task(330, ("check",), 0.05, "SQL", 900_000),
            "load_asia": Task(150, ("check",), type="SQL"),
            "merge": Task(70, _LOADS, type="SPARK", memory_kb=3_400_000),
            "report": Task(35, ("merge",), type="PYTHON"),
        },
        900,
        (("team", "data"), ("tier", "gold")),
        4.0,
    ),
    ("flights", "hourly"): Workflow(
        24,
        {"poll": Task(9, fails=0.012, type="HTTP"), "store": Task(15, ("poll",), type="SQL")},
        60,
        (("team", "data"),),
    ),
    ("flights", "weather"): Workflow(12, {"read": Task(21, fails=0.02, type="HTTP")}),
    ("flights", "forecast"): Workflow(
        1,
        {
            "features": Task(260, type="SPARK", memory_kb=4_200_000),
            "predict": Task(540, ("features",), 0.01, "PYTHON", 6_800_000, "gpu"),
        },
        1200,
        (("team", "ml"),),
        9.0,
    ),
    ("sales", "orders"): Workflow(
        40,
        {
            "read": Task(6, type="SQL"),
            "bill": Task(11, ("read",), 0.008, "PYTHON"),
            "mail": Task(4, ("bill",), type="HTTP"),
        },
        26,
        (("team", "sales"), ("tier", "gold")),
        admission_s=1.4,
    ),
    ("sales", "crm_sync"): Workflow(
        48,
        {"pull": Task(17, fails=0.015, type="HTTP"), "push": Task(12, ("pull",))},
        38,
        admission_s=6.0,
    ),
    ("sales", "weekly_report"): Workflow(
        0.2, {"collect": Task(640, type="SQL"), "render": Task(120, ("collect",), type="PYTHON")}
    ),
    ("sales", "stock"): Workflow(
        4, {"count": Task(75, type="SQL"), "publish": Task(18, ("count",))}, 180
    ),
    ("ml", "churn"): Workflow(
        1,
        {
            "features": Task(840, type="SPARK", memory_kb=5_200_000),
            "train": Task(4_300, ("features",), 0.02, "PYTHON", 11_000_000, "gpu"),
            "score": Task(290, ("train",), type="PYTHON", group="gpu"),
        },
        6000,
        (("team", "ml"),),
        45.0,
    ),
    ("ml", "demand"): Workflow(
        1,
        {
            "train": Task(2_600, type="PYTHON", memory_kb=9_000_000, group="gpu"),
            "score": Task(180, ("train",), 0.02, "PYTHON", group="gpu"),
        },
        4000,
        (("team", "ml"),),
        30.0,
    ),
    ("ml", "embeddings"): Workflow(
        6,
        {"embed": Task(380, fails=0.03, type="PYTHON", memory_kb=7_500_000, group="gpu")},
        admission_s=22.0,
    ),
}
SLOW = ("flights", "nightly"), "load_us"  # longer and longer in the last weeks
_SLOW_DAYS = 21
_BURST = ("sales", "orders"), "bill", range(6, 10)  # fails on these days before the last
_CAUSES: Mapping[str, tuple[str, str]] = {  # by task type
    "SQL": ("5c1d0a77e1b2f903", 'ERROR: deadlock detected on relation "flights_us"'),
    "HTTP": ("9be2f4410c7d5a68", "ConnectionError: api.example.org timed out after 30 s"),
    "PYTHON": ("d04f8c1e93ab7725", "MemoryError: cannot allocate 2147483648 bytes"),
    "SHELL": ("1f2e3d4c5b6a7980", "curl: (22) The requested URL returned error: 503"),
    "SPARK": ("77aa01c2be34fd19", "SparkException: Job aborted due to stage failure"),
}
_BURST_CAUSE = ("e3b7509d21c6f84a", "KeyError: 'vat_id' in line 214 of invoice.py")
_FULL_HOURS = {0: 5, 1: 7, 2: 16, 3: 12, 4: 6, 5: 3, 6: 8, 7: 5, 9: 4, 12: 3, 18: 4, 23: 4}


async def fill(database: Database, last: date, days: int) -> None:
    """Make the results of so many days up to ``last``, and those that look back from there."""
    chance = random.Random(2026)
    now = datetime.now(UTC)
    seen: dict[Name, list[dict[str, Any]]] = {}
    for back in range(days - 1, -1, -1):
        day = last - timedelta(days=back)
        rows = _of_day(day, back, seen)
        for job, blocks in rows.items():
            await store(database, job, day, blocks, now)
    looking_back: dict[str, Mapping[Name, Rows]] = {
        "baselines": _baselines(),
        "baseline_errors": _errors(chance),
        "flapping": _flapping(last),
        "capacity": {CLUSTER: list(_capacity(last))},
        "schedule_minutes": {CLUSTER: list(_minutes())},
        "schedule_moves": _moves(),
    }
    for job, result in looking_back.items():
        await store(database, job, last, result, now)


async def set_baselines(
    database: Database, last: date, more: Mapping[Name, Mapping[str, tuple[float, float]]]
) -> None:
    """Let also these be usual: medians and 95th percentiles by task, the run's with ``""``."""
    blocks = _baselines()
    for name, tasks in more.items():
        blocks[name] = [
            baseline(
                task,
                p50,
                n=41,
                p95_s=p95,
                mad_s=(p95 - p50) / 4,
                late_after_s=max(1.5 * p95, p50 + 3 * (p95 - p50) / 4),
                wait_p50_s=0.1,
                wait_p95_s=0.6,
            )
            for task, (p50, p95) in tasks.items()
        ]
    await store(database, "baselines", last, blocks, datetime.now(UTC))


def _of_day(
    day: date, back: int, seen: dict[Name, list[dict[str, Any]]]
) -> dict[str, dict[Name, Rows]]:
    found: dict[str, dict[Name, Rows]] = {
        job: {} for job in ("workflow_days", "task_days", "critical_days", "costs", "failures")
    }
    for name, workflow in WORKFLOWS.items():
        # Numbers of its own: the runs of others depend on weekdays and must not change them.
        chance = random.Random(f"{back} {name}")
        runs = _runs(chance, workflow, day)
        if not runs:
            continue
        some = [_run(chance, name, workflow, day, back) for _ in range(runs)]
        found["workflow_days"][name] = [_workflow_day(workflow, some)]
        tasks = [_task_day(task, of, some) for task, of in workflow.tasks.items()]
        found["task_days"][name] = tasks
        found["critical_days"][name] = list(_critical(workflow, some))
        found["costs"][name] = list(_costs(workflow, tasks))
        if failures := list(_failures(name, workflow, some, day, seen)):
            found["failures"][name] = failures
    chance = random.Random(back)
    found["worker_days"] = {CLUSTER: list(_workers(chance, day))}
    found["concurrency_hours"] = {CLUSTER: list(_hours(chance, day))}
    return found


class _Run(NamedTuple):
    durations: Mapping[str, float]
    waits: Mapping[str, float]
    failed: str | None  # task
    retried: frozenset[str]
    took: float
    path: Sequence[str]
    gains: Mapping[str, float]


def _runs(chance: random.Random, workflow: Workflow, day: date) -> int:
    share = workflow.runs * (0.6 if day.weekday() == 6 and workflow.runs > 2 else 1)
    return int(share) + (chance.random() < share % 1)


def _run(chance: random.Random, name: Name, workflow: Workflow, day: date, back: int) -> _Run:
    durations, waits, retried, failed = {}, {}, set(), None
    for task, of in workflow.tasks.items():
        slower = 1 + 0.045 * max(0, _SLOW_DAYS - back) if (name, task) == SLOW else 1.0
        slower *= 1.12 if day.weekday() == 0 else 1.0
        durations[task] = of.seconds * slower * math.exp(chance.gauss(0, 0.09))
        waits[task] = workflow.wait_s * chance.expovariate(1) * (4 if of.group == "gpu" else 1)
        fails = 0.25 if (name, task) == _BURST[:2] and back in _BURST[2] else of.fails
        if chance.random() < fails:
            if chance.random() < 0.45:
                failed = failed or task
            retried.add(task)
    took, path = _path(workflow, durations, waits)
    gains = {}
    for task in path:
        without = {**durations, task: 0.0}
        gains[task] = took - _path(workflow, without, waits)[0]
    return _Run(durations, waits, failed, frozenset(retried), took, path, gains)


def _path(
    workflow: Workflow, durations: Mapping[str, float], waits: Mapping[str, float]
) -> tuple[float, Sequence[str]]:
    ends: dict[str, tuple[float, tuple[str, ...]]] = {}
    for task, of in workflow.tasks.items():
        start, path = max((ends[one] for one in of.after), default=(0.0, ()))
        ends[task] = start + waits[task] + durations[task], (*path, task)
    return max(ends.values())


def _workflow_day(workflow: Workflow, runs: Sequence[_Run]) -> dict[str, Any]:
    failed = sum(run.failed is not None for run in runs)
    took = [run.took for run in runs if run.failed is None] or [run.took for run in runs]
    late = sum(run.took > workflow.late_s for run in runs) if workflow.late_s else 0
    paths = _spread("critical", [sum(run.durations[one] for one in run.path) for run in runs])
    requests = 1 if len(runs) > 20 else 0
    reruns = min(failed, len(runs) - requests)
    return {
        "runs": len(runs),
        "succeeded": len(runs) - failed,
        "failed": failed,
        "stopped": 0,
        "by_schedule": len(runs) - requests - reruns,
        "by_backfill": 0,
        "by_parent": 0,
        "by_rerun": reruns,
        "by_request": requests,
        "late": late,
        **_spread("duration", took),
        **_spread("admission", [workflow.admission_s * (1 + i % 7) / 4 for i in range(len(runs))]),
        **{key: value for key, value in paths.items() if not key.endswith("p99")},
    }


def _task_day(task: str, of: Task, runs: Sequence[_Run]) -> dict[str, Any]:
    failed = sum(task in run.retried for run in runs)
    busy = sum(run.durations[task] for run in runs)
    return {
        "task": task,
        "type": of.type,
        "attempts": len(runs) + failed,
        "succeeded": len(runs) - sum(run.failed == task for run in runs),
        "failed": failed,
        "lost": 0,
        "killed": 0,
        "skipped": 0,
        "rescheduled": 0,
        "retries": failed,
        **_spread("duration", [run.durations[task] for run in runs]),
        **_spread("wait", [run.waits[task] for run in runs]),
        "busy_s": busy,
        "cpu_s": busy * (0.9 if of.type in ("PYTHON", "SPARK") else 0.25),
        "max_rss_kb": of.memory_kb,
    }


def _critical(workflow: Workflow, runs: Sequence[_Run]) -> Iterable[dict[str, Any]]:
    for task in workflow.tasks:
        some = [run for run in runs if task in run.path]
        if not some:
            continue
        own = sorted(run.durations[task] for run in some)
        gains = [run.gains[task] for run in some]
        yield {
            "task": task,
            "runs": len(some),
            "runs_of_day": len(runs),
            "own_p50_s": _percentile(own, 0.5),
            "own_mean_s": sum(own) / len(own),
            "gain_mean_s": sum(gains) / len(gains),
            "gain_max_s": max(gains),
            "gain_sum_s": sum(gains),
        }


def _costs(workflow: Workflow, tasks: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for row in tasks:
        for label, value in (("", ""), *workflow.labels):
            yield {
                **cost(row["task"], row["busy_s"], label, value),
                "attempts": row["attempts"],
                "cpu_s": row["cpu_s"],
                "memory_gb_s": row["busy_s"] * row["max_rss_kb"] / 1e6,
            }


def _failures(
    name: Name,
    workflow: Workflow,
    runs: Sequence[_Run],
    day: date,
    seen: dict[Name, list[dict[str, Any]]],
) -> Iterable[dict[str, Any]]:
    for task, of in workflow.tasks.items():
        count = sum(task in run.retried for run in runs)
        if not count:
            continue
        is_burst = (name, task) == _BURST[:2] and count > 2
        fingerprint, sample = _BURST_CAUSE if is_burst else _CAUSES[of.type]
        before = [one for one in seen.get(name, ()) if one["fingerprint"] == fingerprint]
        row = {
            "fingerprint": fingerprint,
            "task": task,
            "sample": sample,
            "count_day": count,
            "count": count + sum(one["count_day"] for one in before),
            "first_seen": before[0]["first_seen"] if before else _at(day, 2.2),
            "last_seen": _at(day, 2.2 + 9 * (count % 2)),
        }
        seen.setdefault(name, []).append(row)
        yield row


def _workers(chance: random.Random, day: date) -> Iterable[dict[str, Any]]:
    for number, (group, use) in enumerate(
        (("default", 0.34), ("default", 0.31), ("default", 0.22), ("gpu", 0.58))
    ):
        slots = 8 if group == "default" else 2
        hours = 24 if day.weekday() != 6 else 19
        share = use * (0.7 + 0.6 * chance.random())
        yield {
            "worker": f"{group}-{number + 1}",
            "attempts": int(260 * use),
            "failed": chance.randrange(6),
            "lost": int(chance.random() < 0.03),
            "busy_s": share * slots * hours * 3600,
            "hours": hours,
            "slots": slots,
            "utilisation": share,
        }


def _hours(chance: random.Random, day: date) -> Iterable[dict[str, Any]]:
    for hour in range(24):
        for group in ("default", "gpu"):
            full = _FULL_HOURS.get(hour, 2) * (1 if group == "default" else 0.12)
            full *= 0.5 if day.weekday() == 6 else 1.25 if day.weekday() == 0 else 1
            mean = full * (0.8 + 0.4 * chance.random())
            most = math.ceil(mean * 1.7)
            waiting = max(0, most - (24 if group == "default" else 2))
            yield {
                "hour": hour,
                "worker_group": group,
                "running_mean": mean,
                "running_max": most,
                "waiting_mean": waiting / 4,
                "waiting_max": waiting,
                "needed_max": most + waiting,
            }


def _baselines() -> dict[Name, Rows]:
    found: dict[Name, Rows] = {}
    for name, workflow in WORKFLOWS.items():
        durations = {task: of.seconds for task, of in workflow.tasks.items()}
        took, _ = _path(workflow, durations, dict.fromkeys(durations, workflow.wait_s))
        found[name] = [
            baseline("", took),
            *(baseline(task, seconds) for task, seconds in durations.items()),
        ]
    return found


def _errors(chance: random.Random) -> dict[Name, Rows]:
    return {
        name: [
            {
                "runs": max(1, int(7 * workflow.runs)),
                "error_p50_s": share * sum(task.seconds for task in workflow.tasks.values()),
                "error_share_p50": share,
                "within_p95": 0.78 if name == SLOW[0] else min(1.0, 0.92 + chance.random() / 8),
                "late_share": 0.14 if name == SLOW[0] else chance.random() / 50,
            }
        ]
        for name, workflow in WORKFLOWS.items()
        for share in [0.21 if name == SLOW[0] else 0.04 + chance.random() / 20]
    }


def _flapping(last: date) -> dict[Name, Rows]:
    row = {
        "task": "embed",
        "runs": 20,
        "changes": 7,
        "failed_rate": 0.2,
        "retried_rate": 0.15,
        "last_seen": _at(last, 11),
    }
    return {("ml", "embeddings"): [row]}


def _capacity(last: date) -> Iterable[dict[str, Any]]:
    for day in (last + timedelta(days=ahead) for ahead in range(1, 8)):
        for hour in range(24):
            for group, share in (("default", 1.0), ("gpu", 0.12)):
                full = _FULL_HOURS.get(hour, 2) * share * 1.7
                full *= 0.5 if day.weekday() == 6 else 1.25 if day.weekday() == 0 else 1
                yield {
                    "forecast_day": day.isoformat(),
                    "hour": hour,
                    "worker_group": group,
                    "slots": math.ceil(full * 1.3),
                    "expected": full,
                    "tested_hours": 672,
                    "error_p50": 1.0,
                    "within_p95": 0.953,
                }


def _minutes() -> Iterable[dict[str, Any]]:
    day = {120: 22.0, 0: 14.0, 390: 9.0}
    for hour in range(24):
        day[hour * 60] = max(day.get(hour * 60, 0), 7.0 if 8 <= hour <= 18 else 4.0)
        day[hour * 60 + 5] = 1.0
        day[hour * 60 + 30] = max(day.get(hour * 60 + 30, 0), 3.0)
        day[hour * 60 + 15] = day[hour * 60 + 45] = 1.6
    hour_of: dict[int, float] = {}
    for minute, starts in day.items():
        hour_of[minute % 60] = hour_of.get(minute % 60, 0) + starts
    for scope, starts_of in (("day", day), ("hour", hour_of)):
        average = sum(starts_of.values()) / (1440 if scope == "day" else 60)
        hot = sorted(starts_of, key=lambda one: -starts_of[one])[:20]
        for minute, starts in sorted(starts_of.items()):
            yield {
                "scope": scope,
                "minute": minute,
                "starts_mean": starts,
                "starts_max": math.ceil(starts),
                "skew_p50_s": 0.2 + starts / 40,
                "skew_p95_s": 0.8 + starts / 1.6,
                "skew_max_s": 1.5 + starts,
                "is_hot": minute in hot and starts > max(5, 3 * average),
            }


def _moves() -> dict[Name, Rows]:
    return {
        name: [
            {
                **move(place, schedule_id=place),
                "minute": 120,
                "move_min": by,
                "highest_before": 23.0 - place,
                "highest_after": 22.0 - place,
            }
        ]
        for place, (name, by) in enumerate(
            (
                (("sales", "stock"), 4),
                (("ml", "demand"), 7),
                (("flights", "forecast"), -3),
                (("flights", "nightly"), 11),
            ),
            1,
        )
    }


def _spread(name: str, values: Sequence[float]) -> dict[str, float]:
    some = sorted(values)
    return {
        f"{name}_p50": _percentile(some, 0.5),
        f"{name}_p95": _percentile(some, 0.95),
        f"{name}_p99": _percentile(some, 0.99),
        f"{name}_mean": sum(some) / len(some),
        f"{name}_max": some[-1],
    }


def _percentile(some: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values, interpolated between neighbours."""
    place = share * (len(some) - 1)
    below = int(place)
    above = min(below + 1, len(some) - 1)
    return some[below] + (some[above] - some[below]) * (place - below)


def _at(day: date, hour: float) -> str:
    at = datetime.combine(day, time(), UTC) + timedelta(seconds=3600 * hour)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")
