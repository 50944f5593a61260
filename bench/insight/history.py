"""A long history as an exporter would have left it, made by NumPy: a million attempts in seconds.

1,000 workflows of 2 to 16 tasks, a few of which have most of the runs; most tasks are short, some
take hours. Most runs start in the first minutes of an hour, by schedule. Every fiftieth attempt
fails, with one of 300 error lines, and is tried again. Runs cross midnight.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shoal.insight.export.columns import schema_of
from shoal.insight.export.exporter import FULL_EVERY
from shoal.insight.history.manifest import HistoryFile, Manifest
from shoal.insight.history.store import HistoryStore
from shoal.insight.history.tables import ATTEMPTS, INSTANCES, PLANS, HistoryTable

FIRST = date(2026, 1, 1)
ATTEMPTS_OF_DAY = 100_000
_WORKFLOWS, _MOST_TASKS, _FAILURES = 1_000, 16, 300
_FAIL, _DAY_US = 0.02, 86_400_000_000
_GROUPS, _WORKERS = ("default", "etl", "spark"), 40
Ints = NDArray[np.int64]
Columns = dict[str, pa.Array]


@dataclass(frozen=True)
class _Plans:
    """Plans of all workflows: ``before`` has two upstream tasks of each task, -1: none."""

    sizes: Ints
    before: Ints
    median_s: NDArray[np.float64]
    share: NDArray[np.float64]  # of the runs


class Writer:
    """Writes days of a history, each as one export."""

    def __init__(self, root: Path, seed: int = 1, attempts_of_day: int = ATTEMPTS_OF_DAY) -> None:
        self._store, self._random = HistoryStore.at(str(root)), np.random.default_rng(seed)
        self._attempts_of_day = attempts_of_day
        self._files: list[HistoryFile] = []
        self._plans = self._made_plans()
        self._event = self._instance = self._attempt = 0
        self._sequence = 0
        self._carried: dict[str, list[pa.Table]] = {"attempts": [], "instances": []}

    def write(self, attempts: int) -> int:
        """Write days until there are so many attempts; return how many there are."""
        self._export_plans()
        written, day = 0, FIRST
        while written < attempts:
            written += self._export_day(day)
            day += timedelta(days=1)
        return written

    def _made_plans(self) -> _Plans:
        pick = self._random
        sizes = pick.integers(2, _MOST_TASKS + 1, _WORKFLOWS)
        before = np.full((_WORKFLOWS, _MOST_TASKS, 2), -1)
        for at in range(1, _MOST_TASKS):
            before[:, at, 0] = pick.integers(max(0, at - 3), at, _WORKFLOWS)
            second = pick.integers(0, at, _WORKFLOWS)
            before[:, at, 1] = np.where(pick.random(_WORKFLOWS) < 0.4, second, -1)
        share = 1 / (np.arange(_WORKFLOWS) + 20.0)
        median_s = pick.lognormal(3.0, 1.3, (_WORKFLOWS, _MOST_TASKS))
        return _Plans(sizes, before, median_s, share / share.sum())

    def _export_plans(self) -> None:
        rows = [
            {
                "project": f"project-{number % 20}",
                "workflow": f"workflow-{number}",
                "version": 1,
                "tasks": [
                    {
                        "name": f"task-{at}",
                        "type": "SHELL",
                        "worker_group": _GROUPS[(number + at) % len(_GROUPS)],
                        "upstream": [
                            f"task-{one}"
                            for one in sorted(set(self._plans.before[number, at].tolist()))
                            if one >= 0
                        ],
                    }
                    for at in range(size)
                ],
                "published_at": np.datetime64(FIRST).astype("datetime64[us]").item(),
                "event_id": self._next(1)[0],
            }
            for number, size in enumerate(self._plans.sizes.tolist())
        ]
        self._export(FIRST, {PLANS: pa.Table.from_pylist(rows, schema_of(PLANS))})

    def _export_day(self, day: date) -> int:
        """Write all that ended on a day; return how many attempts that were."""
        attempts, instances = self._day(day)
        end = np.datetime64(day + timedelta(days=1)).astype("datetime64[us]").astype(np.int64)
        tables = {}
        for table, rows in ((ATTEMPTS, attempts), (INSTANCES, instances)):
            whole = pa.concat_tables([*self._carried[table.name], rows])
            is_over = whole["finished_at"].cast(pa.int64()).to_numpy() < end
            self._carried[table.name] = [whole.filter(pa.array(~is_over))]
            tables[table] = whole.filter(pa.array(is_over))
        self._export(day, tables)
        written: int = tables[ATTEMPTS].num_rows
        return written

    def _day(self, day: date) -> tuple[pa.Table, pa.Table]:
        pick, plans = self._random, self._plans
        mean_tasks = float((plans.share * plans.sizes).sum()) * (1 + _FAIL)
        count = int(self._attempts_of_day / mean_tasks)
        workflow = pick.choice(_WORKFLOWS, count, p=plans.share)
        start = np.datetime64(day).astype("datetime64[us]").astype(np.int64)
        # Schedules fire at a minute of the hour that is theirs; more so in the night.
        hour = np.minimum(pick.integers(0, 24, count), pick.integers(0, 30, count))
        logical = start + hour * 3_600_000_000 + workflow * 7 % 60 // 4 * 60_000_000
        by_schedule = pick.random(count) < 0.8
        logical = np.where(by_schedule, logical, start + pick.integers(0, _DAY_US, count))
        created = logical + pick.exponential(300_000, count).astype(np.int64)
        begun = created + pick.exponential(100_000, count).astype(np.int64)
        ids = self._instance + 1 + np.arange(count)
        self._instance += count
        ends = np.zeros((count, _MOST_TASKS), dtype=np.int64)
        parts: list[dict[str, Ints]] = []
        rows = np.arange(count)
        for at in range(_MOST_TASKS):
            mine = rows[plans.sizes[workflow] > at]
            before = plans.before[workflow[mine], at]
            ready = np.maximum(
                begun[mine],
                np.where(before >= 0, ends[mine[:, None], np.maximum(before, 0)], 0).max(axis=1),
            )
            for number in (1, 2):
                queued = ready + pick.exponential(20_000, len(mine)).astype(np.int64)
                started = queued + pick.lognormal(-1, 1.5, len(mine)) * 1e6
                lasts = pick.lognormal(0, 0.4, len(mine)) * plans.median_s[workflow[mine], at] * 1e6
                finished = (started + lasts).astype(np.int64)
                failed = pick.random(len(mine)) < _FAIL
                parts.append(
                    {
                        "run": mine,
                        "at": np.full(len(mine), at),
                        "attempt": np.full(len(mine), number),
                        "queued_at": queued,
                        "started_at": started.astype(np.int64),
                        "finished_at": finished,
                        "failed": failed.astype(np.int64),
                    }
                )
                ends[mine, at] = finished
                # A second attempt ends it, whatever its end.
                mine, ready = mine[failed], finished[failed] + 10_000_000
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        final = np.zeros(count, dtype=np.int64)
        second_failed = (columns["attempt"] == 2) & (columns["failed"] == 1)
        final[columns["run"][second_failed]] = 1
        attempts = self._attempts(columns, workflow, ids)
        instances = self._instances(
            workflow, ids, by_schedule, final, logical, created, begun, ends
        )
        return attempts, instances

    def _attempts(self, columns: dict[str, Ints], workflow: Ints, ids: Ints) -> pa.Table:
        pick = self._random
        order = np.argsort(columns["finished_at"], kind="stable")
        columns = {name: values[order] for name, values in columns.items()}
        run, at = columns["run"], columns["at"]
        of, count = workflow[run], len(order)
        failed = columns["failed"] == 1
        why = (of * 7 + at) % _FAILURES
        lasts = (columns["finished_at"] - columns["started_at"]) / 1e6
        found: Columns = {
            "attempt_id": pa.array(self._attempt + 1 + np.arange(count)),
            "instance_id": pa.array(ids[run]),
            **_named(of),
            "task": _texts([f"task-{one}" for one in range(_MOST_TASKS)], at),
            "type": _texts(["SHELL"], np.zeros(count, dtype=np.int64)),
            "worker_group": _texts(_GROUPS, (of + at) % len(_GROUPS)),
            "worker": _texts(
                [f"worker-{one}" for one in range(_WORKERS)], pick.integers(0, _WORKERS, count)
            ),
            "attempt": pa.array(columns["attempt"]),
            "state": _texts(["SUCCEEDED", "FAILED"], columns["failed"]),
            "reason": _texts(["exit code 1"], np.zeros(count, dtype=np.int64), ~failed),
            "exit_code": pa.array(columns["failed"]),
            "forced": pa.array(np.zeros(count, dtype=bool)),
            **{name: _times(columns[name]) for name in ("queued_at", "started_at", "finished_at")},
            "cpu_s": pa.array(np.round(lasts * pick.random(count), 2)),
            "max_rss_kb": pa.array(pick.integers(5_000, 900_000, count)),
            "error_line": _texts(
                [f"ValueError: no column {one}" for one in range(_FAILURES)], why, ~failed
            ),
            "fingerprint": _texts(
                [sha256(str(one).encode()).hexdigest()[:16] for one in range(_FAILURES)],
                why,
                ~failed,
            ),
            "event_id": pa.array(self._next(count)),
        }
        self._attempt += count
        return _table(ATTEMPTS, found)

    def _instances(
        self,
        workflow: Ints,
        ids: Ints,
        by_schedule: NDArray[np.bool_],
        failed: Ints,
        logical: Ints,
        created: Ints,
        begun: Ints,
        ends: Ints,
    ) -> pa.Table:
        count = len(ids)
        finished = ends.max(axis=1)
        late = finished > created + 3_600_000_000
        teams = [[("team", f"team-{one}")] for one in range(10)]
        labels = pa.array(teams, pa.map_(pa.string(), pa.string()))
        found: Columns = {
            "instance_id": pa.array(ids),
            **_named(workflow),
            "state": _texts(["SUCCEEDED", "FAILED"], failed),
            "trigger": _texts(["request", "schedule"], by_schedule.astype(np.int64)),
            "schedule_id": pa.array(workflow + 1, mask=~by_schedule),
            "priority": pa.array(np.full(count, 3)),
            "logical_time": _times(logical),
            "created_at": _times(created),
            "admitted_at": _times(created),
            "started_at": _times(begun),
            "finished_at": _times(finished),
            "deadline_at": _times(created + 3_600_000_000),
            "late_at": pa.array(created + 3_600_000_000, mask=~late).cast(_TIME),
            "labels": labels.take(pa.array(workflow % 10)),
            "event_id": pa.array(self._next(count)),
        }
        return _table(INSTANCES, found)

    def _next(self, count: int) -> Ints:
        self._event += count
        return np.arange(self._event - count + 1, self._event + 1)

    def _export(self, day: date, tables: dict[HistoryTable, pa.Table]) -> None:
        self._sequence += 1
        files = []
        for table, rows in tables.items():
            content = io.BytesIO()
            pq.write_table(rows, content, compression="zstd")
            written = content.getvalue()
            ids = None
            if table is not PLANS:
                least = pc.min_max(rows["instance_id"])
                ids = (least["min"].as_py(), least["max"].as_py())
            number, count = self._sequence, rows.num_rows
            files.append(self._store.put(number, table.name, day, written, count, ids=ids))
        self._files += files
        until = datetime.combine(day, datetime.min.time(), UTC) + timedelta(days=1)
        manifest = Manifest(self._sequence, files, until)
        if self._sequence % FULL_EVERY == 0:
            manifest = Manifest(self._sequence, self._files, until, is_full=True)
        self._store.put_manifest(manifest)


_TIME = pa.timestamp("us", tz="UTC")


def _times(micros: Ints) -> pa.Array:
    return pa.array(micros).cast(_TIME)


def _texts(names: Sequence[str], which: Ints, missing: NDArray[np.bool_] | None = None) -> pa.Array:
    return pa.array(list(names)).take(pa.array(which, mask=missing))


def _named(workflow: Ints) -> Columns:
    return {
        "project": _texts([f"project-{one}" for one in range(20)], workflow % 20),
        "workflow": _texts([f"workflow-{one}" for one in range(_WORKFLOWS)], workflow),
        "version": pa.array(np.ones(len(workflow), dtype=np.int64)),
    }


def _table(table: HistoryTable, columns: Columns) -> pa.Table:
    """Return a table with all columns; those that are not given are NULL."""
    count = len(next(iter(columns.values())))
    schema = schema_of(table)
    return pa.Table.from_arrays(
        [columns.get(field.name, pa.nulls(count, field.type)) for field in schema], schema=schema
    )
