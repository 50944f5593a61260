"""Made results of jobs: workflows with tasks, some of which get slower, fail, are late or wait."""

import math
import random
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from tests.support.insight.rollups import (
    CLUSTER,
    Blocks,
    baseline,
    cost,
    failure,
    spread,
    task_day,
    workflow_day,
)

LAST = date(2026, 1, 31)
_NAMES = ("ingest", "clean", "join", "train", "score", "export", "report", "publish", "audit")
_TEAMS = ("flights", "sales", "billing", "search")
_ERRORS = (
    "ConnectionError: warehouse.example.org:5432 refused the connection",
    "ValueError: 3 of 27,004 rows have no departure time",
    "java.lang.OutOfMemoryError: Java heap space",
    "KeyError: 'carrier'",
    "exit status 137: killed, out of memory",
)


class Made:
    """Results of some days, of ``workflows`` workflows of ``tasks`` tasks each."""

    def __init__(self, workflows: int, tasks: int, days: int, seed: int = 1) -> None:
        self._chance = random.Random(seed)
        self.names = [
            (_TEAMS[number % len(_TEAMS)], self._name(number)) for number in range(workflows)
        ]
        self.tasks = [f"{_NAMES[number % len(_NAMES)]}-{number}" for number in range(tasks)]
        self.days = [LAST - timedelta(days=back) for back in range(days - 1, -1, -1)]
        self._usual = {name: self._chance.lognormvariate(5.5, 1.0) for name in self.names}
        self._kind = {name: number for number, name in enumerate(self.names)}

    @staticmethod
    def _name(number: int) -> str:
        return f"{_NAMES[number % len(_NAMES)]}-{number // len(_NAMES)}"

    def of_day(self, day: date) -> Iterator[tuple[str, Blocks]]:
        """Yield each job's result of a day, and its rows by workflow."""
        runs = {name: self._runs(name, day) for name in self.names}
        yield "workflow_days", {name: [row] for name, row in runs.items()}
        yield "task_days", {name: self._task_rows(name, runs[name]) for name in self.names}
        yield "costs", {name: self._cost_rows(name, runs[name]) for name in self.names}
        failing = {name: row for name, row in runs.items() if row["failed"]}
        yield "failures", {name: [self._failure(name, day, row)] for name, row in failing.items()}
        yield "critical_days", {name: self._critical(row) for name, row in runs.items()}
        yield "concurrency_hours", {CLUSTER: self._hours(day)}
        yield "worker_days", {CLUSTER: [self._worker(number) for number in range(6)]}

    def snapshots(self) -> Iterator[tuple[str, Blocks]]:
        """Yield the results that look back, as of the last day."""
        yield "baselines", {name: self._baselines(name) for name in self.names}
        errors = {"runs": 7, "error_p50_s": 20.0, "error_share_p50": 0.07}
        errors |= {"within_p95": 0.94, "late_share": 0.01}
        yield "baseline_errors", {name: [errors] for name in self.names}
        yield "capacity", {CLUSTER: [*self._forecast()]}
        yield "schedule_minutes", {CLUSTER: [*self._minutes()]}
        moves = {
            "minute": 120,
            "move_min": 4,
            "starts_per_day": 1.0,
            "highest_before": 44.0,
            "highest_after": 41.0,
        }
        some = enumerate(self.names[:5], 1)
        yield (
            "schedule_moves",
            {name: [{"place": place, "schedule_id": place + 6, **moves}] for place, name in some},
        )

    def _runs(self, name: tuple[str, str], day: date) -> dict[str, Any]:
        kind, chance = self._kind[name], self._chance
        runs = (1, 4, 24)[kind % 3]
        age = (LAST - day).days
        grown = 1 + max(0, 28 - age) / 40 if kind % 7 == 3 else 1.0
        took = self._usual[name] * grown * chance.lognormvariate(0, 0.1)
        waits = 12.0 * chance.random() if kind % 5 == 2 and 1 <= day.weekday() <= 4 else 0.2
        failed = min(runs, sum(chance.random() < (0.2 if kind % 11 == 4 else 0.01) for _ in "12"))
        late = int(kind % 7 == 3 and age < 10)
        row = workflow_day(runs, took, failed=failed, late=late)
        return row | {**spread("admission", waits), **spread("duration", took, p95=took * 1.5)}

    def _task_rows(self, name: tuple[str, str], runs: Mapping[str, Any]) -> list[dict[str, Any]]:
        whole = runs["duration_p50"] / len(self.tasks)
        wait = 4.0 if self._kind[name] % 5 == 2 else 0.3
        return [
            task_day(
                task,
                runs["runs"],
                **spread("duration", whole),
                **spread("wait", wait * self._chance.random()),
                busy_s=whole * runs["runs"],
                cpu_s=whole * runs["runs"] * 0.7,
                retries=int(runs["failed"] > 0),
            )
            for task in self.tasks
        ]

    def _cost_rows(self, name: tuple[str, str], runs: Mapping[str, Any]) -> list[dict[str, Any]]:
        used = runs["duration_p50"] / len(self.tasks) * runs["runs"]
        labels = (("", ""), ("team", name[0]), ("tier", str(self._kind[name] % 3)))
        return [cost(task, used, *label) for task in self.tasks for label in labels]

    def _failure(self, name: tuple[str, str], day: date, row: Mapping[str, Any]) -> Any:
        number = self._kind[name] % len(_ERRORS)
        return failure(
            self.tasks[number % len(self.tasks)],
            f"{number:016x}",
            sample=_ERRORS[number],
            count_day=row["failed"],
            first_seen=f"{day - timedelta(days=20)}T03:04:05.000000Z",
            last_seen=f"{day}T04:{number:02}:00.000000Z",
        )

    def _critical(self, runs: Mapping[str, Any]) -> list[dict[str, Any]]:
        own = runs["duration_p50"] / len(self.tasks)
        return [
            {
                "task": task,
                "runs": runs["runs"],
                "runs_of_day": runs["runs"],
                "own_p50_s": own,
                "own_mean_s": own,
                "gain_mean_s": own / 2,
                "gain_max_s": own,
                "gain_sum_s": own / 2 * runs["runs"],
            }
            for task in self.tasks[: len(self.tasks) // 2 + 1]
        ]

    def _baselines(self, name: tuple[str, str]) -> list[dict[str, Any]]:
        usual = self._usual[name]
        own = usual / len(self.tasks)
        hours = range(24) if self._kind[name] % 3 == 2 else ()
        return [
            baseline(task, p50, hour=hour)
            for task, p50 in (("", usual), *((task, own) for task in self.tasks))
            for hour in (-1, *hours)
        ]

    def _busy(self, day: date, hour: int) -> float:
        night = 24 * math.exp(-(((hour - 3) / 2.2) ** 2))
        office = (9 if day.weekday() < 5 else 2) * math.exp(-(((hour - 14) / 4) ** 2))
        return night + office + 1

    def _hours(self, day: date) -> list[dict[str, Any]]:
        found = []
        for group, share in (("default", 1.0), ("gpu", 0.2)):
            for hour in range(24):
                running = self._busy(day, hour) * share * self._chance.uniform(0.9, 1.1)
                found.append(
                    {
                        "hour": hour,
                        "worker_group": group,
                        "running_mean": running,
                        "running_max": math.ceil(running * 1.6),
                        "waiting_mean": max(0.0, running - 20),
                        "waiting_max": math.ceil(max(0.0, running * 1.6 - 20)),
                        "needed_max": math.ceil(running * 2),
                    }
                )
        return found

    def _worker(self, number: int) -> dict[str, Any]:
        return {
            "worker": f"host-{number}",
            "attempts": 400 + number,
            "failed": number,
            "lost": 0,
            "busy_s": 9_000.0 * (number + 1),
            "hours": 24,
            "slots": 8,
            "utilisation": None,
        }

    def _forecast(self) -> Iterator[dict[str, Any]]:
        for group, share in (("default", 1.0), ("gpu", 0.2)):
            for hour in range(7 * 24):
                day = LAST + timedelta(days=1 + hour // 24)
                expected = self._busy(day, hour % 24) * share * 1.6
                yield {
                    "forecast_day": day.isoformat(),
                    "hour": hour % 24,
                    "worker_group": group,
                    "slots": math.ceil(expected * 1.25),
                    "expected": expected,
                    "tested_hours": 504,
                    "error_p50": 2.1,
                    "within_p95": 0.953,
                }

    def _minutes(self) -> Iterator[dict[str, Any]]:
        for minute, starts in ((120, 44.0), (0, 31.0), (180, 28.0), (360, 25.5), (125, 3.0)):
            yield {
                "scope": "day",
                "minute": minute,
                "starts_mean": starts,
                "starts_max": int(starts) + 3,
                "skew_p50_s": 0.4,
                "skew_p95_s": starts / 4,
                "skew_max_s": starts,
                "is_hot": starts > 20,
            }
