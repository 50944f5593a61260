"""Random histories: small, and with everything that can be odd about one."""

import io
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.insight.export.columns import schema_of
from shoal.insight.history.manifest import Manifest
from shoal.insight.history.store import HistoryStore
from shoal.insight.history.tables import ATTEMPTS, INSTANCES, PLANS, HistoryTable

FIRST = date(2026, 3, 24)  # Europe's clocks change on the 29th
Row = dict[str, Any]
#: The folder of a cluster's history, as a part of its path.
CLUSTER = "0" * 32


class History:
    """A history in a folder, written export by export."""

    def __init__(self, root: Path) -> None:
        self._store = HistoryStore.at(str(root))
        self._event = 0

    def event(self) -> int:
        """Return the next event id."""
        self._event += 1
        return self._event

    def export(self, rows: Mapping[HistoryTable, Sequence[Row]]) -> None:
        """Write rows as one export does: files by day, then the manifest that names them."""
        sequence = self._store.last_sequence() + 1
        files = []
        for table, all_rows in rows.items():
            by_day: dict[date, list[Row]] = defaultdict(list)
            for row in all_rows:
                by_day[row[table.at].astimezone(UTC).date()].append(row)
            for day, of_day in sorted(by_day.items()):
                content = io.BytesIO()
                pq.write_table(pa.Table.from_pylist(of_day, schema_of(table)), content)
                files.append(
                    self._store.put(sequence, table.name, day, content.getvalue(), len(of_day))
                )
        self._store.put_manifest(Manifest(sequence, files, datetime.now(UTC)))


class Generator:
    """Makes rows of a history that the seed determines."""

    def __init__(self, history: History, seed: int, days: int = 6, runs: int = 160) -> None:
        self._history, self._random = history, random.Random(seed)
        self._days, self._runs = days, runs
        self._attempt = 0
        self.plans = self._plans()

    def write(self) -> None:
        """Write the history in three exports: plans, most runs, and what came late or again."""
        attempts: list[Row] = []
        instances: list[Row] = []
        for number in range(1, self._runs + 1):
            instance, its = self._run(number)
            instances.append(instance)
            attempts += its
        late = self._random.sample(range(len(attempts)), len(attempts) // 20)
        again = self._again(attempts, instances)
        self._history.export({PLANS: self.plans})
        self._history.export(
            {
                ATTEMPTS: [row for at, row in enumerate(attempts) if at not in set(late)],
                INSTANCES: instances,
            }
        )
        self._history.export(
            {ATTEMPTS: [attempts[at] for at in late] + again[ATTEMPTS], INSTANCES: again[INSTANCES]}
        )

    def late(self, day: int) -> date:
        """Export one more run, which had ended on a day that was exported already."""
        while True:
            self._runs += 1
            instance, attempts = self._run(self._runs)
            finished = {row["finished_at"].date() for row in [instance, *attempts]}
            if finished == {FIRST + timedelta(days=day)}:
                self._history.export({ATTEMPTS: attempts, INSTANCES: [instance]})
                return FIRST + timedelta(days=day)

    def late_crossing(self) -> None:
        """Export one more run, which had gone on after midnight."""
        while True:
            self._runs += 1
            instance, attempts = self._run(self._runs)
            days = {row["finished_at"].date() for row in [instance, *attempts]}
            if len(days) > 1 and max(days) <= FIRST + timedelta(days=self._days):
                self._history.export({ATTEMPTS: attempts, INSTANCES: [instance]})
                return

    def _plans(self) -> list[Row]:
        plans = []
        for number in range(5):
            for version in (1, 2):
                count = self._random.choice([1, 3, 6, 8])
                names = [f"t{at}" for at in range(count)]
                tasks = [
                    {
                        "name": name,
                        "type": self._random.choice(["SHELL", "SQL", "SUB_WORKFLOW"]),
                        "worker_group": self._random.choice(["default", "etl"]),
                        "upstream": self._random.sample(
                            names[:at], self._random.randint(0, min(at, 3))
                        ),
                    }
                    for at, name in enumerate(names)
                ]
                plans.append(
                    {
                        "project": f"p{number % 2}",
                        "workflow": f"w{number}",
                        "version": version,
                        "tasks": tasks,
                        "published_at": _at(0, 0),
                        "event_id": self._history.event(),
                    }
                )
        return plans

    def _run(self, number: int) -> tuple[Row, list[Row]]:
        pick = self._random
        # Skewed: most runs are of the first workflow. The fourth day is empty.
        plan = self.plans[min(int(pick.expovariate(0.5)), len(self.plans) - 1)]
        day = pick.choice([day for day in range(self._days) if day != 3])
        logical = _at(day, pick.choice([0, 0, 600, 5_400, 83_000]) + 60 * pick.randint(0, 40))
        created = logical + timedelta(seconds=pick.expovariate(0.2))
        started = created + timedelta(seconds=pick.expovariate(0.1))
        ends: dict[str, datetime] = {}
        rows: list[Row] = []
        for task in plan["tasks"]:
            ready = max([started, *(ends[one] for one in task["upstream"])])
            its = self._attempts(number, plan, task, ready)
            rows += its
            ends[task["name"]] = max(row["finished_at"] for row in its)
        has_failed = any(
            max(same, key=lambda row: row["attempt"])["state"] == "FAILED"
            for same in _by(rows, "task").values()
        )
        finished = max(ends.values())
        deadline = created + timedelta(seconds=300) if pick.random() < 0.3 else None
        trigger = pick.choice(["schedule", "schedule", "schedule", "backfill", "request", "parent"])
        labels = {"team": pick.choice(["ops", "data"])} if pick.random() < 0.7 else {}
        if pick.random() < 0.2:
            labels["tier"] = "gold"
        instance = {
            "instance_id": number,
            **{name: plan[name] for name in ("project", "workflow", "version")},
            "state": "FAILED" if has_failed else pick.choice(["SUCCEEDED"] * 9 + ["STOPPED"]),
            "reason": None,
            "trigger": trigger,
            "schedule_id": int(plan["workflow"][1:]) + 10 if trigger == "schedule" else None,
            "backfill_id": None,
            "parent_instance_id": None,
            "priority": 3,
            "logical_time": logical,
            "created_at": created,
            "admitted_at": created if pick.random() < 0.9 else None,
            "started_at": started if pick.random() < 0.95 else None,
            "finished_at": finished,
            "deadline_at": deadline,
            "late_at": deadline if deadline is not None and finished > deadline else None,
            "labels": labels,
            "event_id": self._history.event(),
        }
        return instance, rows

    def _attempts(self, instance: int, plan: Row, task: Row, ready: datetime) -> list[Row]:
        pick = self._random
        rows: list[Row] = []
        at = ready
        looks = task["type"] == "SQL" and pick.random() < 0.1
        while True:
            self._attempt += 1
            state = pick.choice(["SUCCEEDED"] * 12 + ["FAILED"] * 3 + ["LOST", "KILLED", "SKIPPED"])
            if looks and len(rows) < 2:
                state = "RESCHEDULED"
            was_queued = state != "SKIPPED" and task["type"] != "SUB_WORKFLOW"
            has_run = state != "SKIPPED" and not (state == "KILLED" and pick.random() < 0.5)
            queued = at + timedelta(seconds=pick.choice([0, 0.5, 3]))
            started = queued + timedelta(microseconds=int(pick.lognormvariate(0, 1.5) * 1e6))
            long = pick.random() < 0.05
            lasts = timedelta(microseconds=int(pick.lognormvariate(8 if long else 3, 1.2) * 1e6))
            if pick.random() < 0.02:
                lasts = -timedelta(seconds=5)  # a clock was set
            finished = (started if has_run else queued) + (lasts if has_run else timedelta())
            error = state == "FAILED" and pick.random() < 0.7
            measured = has_run and pick.random() < 0.8
            rows.append(
                {
                    "attempt_id": self._attempt,
                    "instance_id": instance,
                    **{name: plan[name] for name in ("project", "workflow", "version")},
                    "task": task["name"],
                    "type": task["type"],
                    "worker_group": task["worker_group"],
                    "worker": pick.choice(["a", "b", "c"]) if was_queued and has_run else None,
                    "attempt": len(rows) + 1,
                    "state": state,
                    "reason": "exit code 1" if state == "FAILED" else None,
                    "exit_code": 1 if state == "FAILED" else None,
                    "forced": False,
                    "waiting_since": ready if looks and rows else None,
                    "queued_at": queued if was_queued else None,
                    "started_at": started if has_run else None,
                    "finished_at": finished,
                    "cpu_s": pick.random() * 10 if measured else None,
                    "max_rss_kb": pick.randint(1_000, 4_000_000) if measured else None,
                    "error_line": f"boom at line {pick.randint(1, 9)}" if error else None,
                    "fingerprint": pick.choice(["f00d", "beef"]) if error else None,
                    "event_id": self._history.event(),
                }
            )
            if state == "RESCHEDULED" or (state in ("FAILED", "LOST") and len(rows) < 3):
                at = finished + timedelta(seconds=pick.choice([0, 10]))
                continue
            return rows

    def _again(self, attempts: list[Row], instances: list[Row]) -> Mapping[HistoryTable, list[Row]]:
        """Return rows that supersede others: forced successes, and runs that were run again."""
        pick = self._random
        failed = [row for row in attempts if row["state"] == "FAILED"]
        forced = [
            row | {"state": "SUCCEEDED", "forced": True, "event_id": self._history.event()}
            for row in pick.sample(failed, len(failed) // 4)
        ]
        rerun = [
            row
            | {
                "state": "SUCCEEDED",
                "finished_at": row["finished_at"] + timedelta(hours=pick.choice([0, 1, 30])),
                "event_id": self._history.event(),
            }
            for row in pick.sample(instances, len(instances) // 10)
        ]
        return {ATTEMPTS: forced, INSTANCES: rerun}


def _at(day: int, seconds: float) -> datetime:
    start = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC)
    return start + timedelta(days=day, seconds=seconds)


def _by(rows: Sequence[Row], name: str) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[name]].append(row)
    return found
