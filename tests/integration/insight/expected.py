"""What the jobs have to find, computed by DuckDB and plain Python from the same files."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np

from tests.support.insight.critical_path import path_of

Row = dict[str, Any]
_HOUR_US = 3_600_000_000


class Expected:
    """The results for some days of a history."""

    def __init__(self, root: Path, first: date, last: date) -> None:
        self.first, self.last = first, last
        self._db = duckdb.connect()
        self._db.execute("SET TimeZone = 'UTC'")
        for table, key in {
            "attempts": "attempt_id",
            "instances": "instance_id",
            "plans": "project, workflow, version",
        }.items():
            self._db.execute(
                f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{root}/{table}/*/*.parquet', "
                "hive_partitioning = false) QUALIFY row_number() OVER "
                f"(PARTITION BY {key} ORDER BY event_id DESC) = 1"
            )
        self._db.execute(
            "CREATE MACRO secs(a, b) AS greatest(0, epoch_us(b) - epoch_us(a)) / 1e6"
            " + if(a IS NULL OR b IS NULL, NULL, 0)"
        )

    def _rows(self, sql: str) -> list[Row]:
        self._db.execute(sql)
        names = [one[0] for one in self._db.description or []]
        return [dict(zip(names, row, strict=True)) for row in self._db.fetchall()]

    def _days(self, at: str = "finished_at") -> str:
        return f"CAST({at} AS DATE) BETWEEN DATE '{self.first}' AND DATE '{self.last}'"

    def _window(self, days: int, at: str = "finished_at") -> str:
        start = self.last - timedelta(days=days - 1)
        return f"CAST({at} AS DATE) BETWEEN DATE '{start}' AND DATE '{self.last}'"

    def task_days(self) -> list[Row]:
        return self._rows(f"""
            SELECT CAST(finished_at AS DATE) AS day, project, workflow, task, type,
                count(*) FILTER (state NOT IN ('SKIPPED', 'RESCHEDULED')) AS attempts,
                count(*) FILTER (state = 'SUCCEEDED') AS succeeded,
                count(*) FILTER (state = 'FAILED') AS failed,
                count(*) FILTER (state = 'LOST') AS lost,
                count(*) FILTER (state = 'KILLED') AS killed,
                count(*) FILTER (state = 'SKIPPED') AS skipped,
                count(*) FILTER (state = 'RESCHEDULED') AS rescheduled,
                count(*) FILTER (attempt > 1 AND waiting_since IS NULL
                    AND state NOT IN ('SKIPPED', 'RESCHEDULED')) AS retries,
                {_spread("secs(started_at, finished_at)", "duration")},
                {_spread("secs(queued_at, started_at)", "wait")},
                sum(secs(started_at, finished_at)) AS busy_s, sum(cpu_s) AS cpu_s,
                max(max_rss_kb) AS max_rss_kb
            FROM attempts WHERE {self._days()} GROUP BY ALL""")

    def workflow_days(self) -> list[Row]:
        worked: dict[int, float] = defaultdict(float)
        for link in self.critical_paths():
            worked[link["instance_id"]] += link["own_s"]
        self._db.execute("CREATE OR REPLACE TABLE worked (instance_id BIGINT, critical_s DOUBLE)")
        if worked:
            self._db.executemany("INSERT INTO worked VALUES (?, ?)", list(worked.items()))
        triggers = ", ".join(
            f"count(*) FILTER (trigger = '{one}') AS by_{one}"
            for one in ("schedule", "backfill", "parent", "rerun", "request")
        )
        return self._rows(f"""
            SELECT CAST(finished_at AS DATE) AS day, project, workflow, count(*) AS runs,
                count(*) FILTER (state = 'SUCCEEDED') AS succeeded,
                count(*) FILTER (state = 'FAILED') AS failed,
                count(*) FILTER (state = 'STOPPED') AS stopped,
                {triggers}, count(late_at) AS late,
                {_spread("secs(started_at, finished_at)", "duration")},
                {_spread("secs(created_at, admitted_at)", "admission")},
                {_spread("critical_s", "critical", (50, 95))}
            FROM instances LEFT JOIN worked USING (instance_id)
            WHERE {self._days()} GROUP BY ALL""")

    @cached_property
    def _attempts(self) -> list[Row]:
        return self._rows("SELECT * FROM attempts")

    def _hours(self, days: int | None = None) -> dict[tuple[str, str, int], tuple[int, int]]:
        """Return the highest number and the total of microseconds by kind, name and hour."""
        intervals: dict[tuple[str, str, int], list[tuple[int, int]]] = defaultdict(list)
        first = self.first if days is None else self.last - timedelta(days=days - 1)
        hours = range(_hours(first), _hours(self.last) + 24)
        for row in self._attempts:
            for kind, name, start, end in _intervals(row):
                for hour in range(start // _HOUR_US, (end - 1) // _HOUR_US + 1):
                    if hour in hours:
                        low, high = hour * _HOUR_US, (hour + 1) * _HOUR_US
                        intervals[kind, name, hour].append((max(start, low), min(end, high)))
        return {
            key: (
                max(sum(a <= at < b for a, b in ones) for at, _ in ones),
                sum(b - a for a, b in ones),
            )
            for key, ones in intervals.items()
        }

    def worker_days(self) -> list[Row]:
        found: dict[tuple[date, str], Row] = {}
        for (kind, name, hour), (most, total) in self._hours().items():
            if kind == "worker":
                row = found.setdefault((_day(hour), name), _worker_day(_day(hour), name))
                row["busy_s"] += total / 1e6
                row["hours"] += 1
                row["slots"] = max(row["slots"], most)
        for attempt in self._attempts:
            day = attempt["finished_at"].date()
            if attempt["worker"] is not None and self.first <= day <= self.last:
                key = (day, attempt["worker"])
                row = found.setdefault(key, _worker_day(*key))
                row["attempts"] += 1
                row["failed"] += attempt["state"] == "FAILED"
                row["lost"] += attempt["state"] == "LOST"
        for row in found.values():
            possible = row["hours"] * row["slots"] * 3600
            row["utilisation"] = row["busy_s"] / possible if possible else 0.0
        return list(found.values())

    def concurrency_hours(self) -> list[Row]:
        found: dict[tuple[int, str], Row] = {}
        for (kind, name, hour), (most, total) in self._hours().items():
            if kind == "worker":
                continue
            empty = {"day": _day(hour), "hour": hour % 24, "worker_group": name}
            empty |= dict.fromkeys(("running_mean", "waiting_mean"), 0.0)
            empty |= dict.fromkeys(("running_max", "waiting_max", "needed_max"), 0)
            row = found.setdefault((hour, name), empty)
            row[f"{kind}_max"] = most
            if kind != "needed":
                row[f"{kind}_mean"] = total / _HOUR_US
        return list(found.values())

    def critical_paths(self) -> list[Row]:
        plans = {
            (row["project"], row["workflow"], row["version"]): {
                task["name"]: task["upstream"] for task in row["tasks"]
            }
            for row in self._rows("SELECT * FROM plans")
        }
        newest: dict[int, dict[str, Row]] = defaultdict(dict)
        for row in sorted(self._attempts, key=lambda one: one["attempt"]):
            if row["finished_at"].date() <= self.last:
                newest[row["instance_id"]][row["task"]] = row
        found = []
        for run in self._rows(f"SELECT * FROM instances WHERE {self._days()}"):
            begun = _us(run["started_at"] or run["admitted_at"] or run["created_at"])
            mine = newest[run["instance_id"]]
            times = {
                task: (
                    _us(row["started_at"]) - begun,
                    max(_us(row["started_at"]), _us(row["finished_at"])) - begun,
                )
                for task, row in mine.items()
                if row["started_at"] is not None
            }
            upstream = plans[run["project"], run["workflow"], run["version"]]
            for place, (task, wait, own, gain) in enumerate(path_of(upstream, times), 1):
                found.append(
                    {
                        "day": run["finished_at"].date(),
                        **{name: run[name] for name in ("project", "workflow", "instance_id")},
                        "place": place,
                        "task": task,
                        "attempt_id": mine[task]["attempt_id"],
                        "attempt": mine[task]["attempt"],
                        "wait_s": wait / 1e6,
                        "own_s": own / 1e6,
                        "gain_s": gain / 1e6,
                    }
                )
        return found

    def critical_days(self) -> list[Row]:
        links: dict[tuple[date, str, str, str], list[Row]] = defaultdict(list)
        runs: dict[tuple[date, str, str], set[int]] = defaultdict(set)
        for link in self.critical_paths():
            workflow = (link["day"], link["project"], link["workflow"])
            links[*workflow, link["task"]].append(link)
            runs[workflow].add(link["instance_id"])
        found = []
        for (day, project, workflow_name, task), rows in links.items():
            own, gain = [row["own_s"] for row in rows], [row["gain_s"] for row in rows]
            found.append(
                {
                    "day": day,
                    "project": project,
                    "workflow": workflow_name,
                    "task": task,
                    "runs": len(rows),
                    "runs_of_day": len(runs[day, project, workflow_name]),
                    "own_p50_s": median(own),
                    "own_mean_s": sum(own) / len(own),
                    "gain_mean_s": sum(gain) / len(gain),
                    "gain_max_s": max(gain),
                    "gain_sum_s": sum(gain),
                }
            )
        return found

    def costs(self) -> list[Row]:
        return self._rows(f"""
            WITH labels AS (
                SELECT instance_id, '' AS label, '' AS value FROM instances
                UNION ALL
                SELECT instance_id, unnest(map_keys(labels)), unnest(map_values(labels))
                FROM instances
            )
            SELECT CAST(finished_at AS DATE) AS day, project, workflow, task, label, value,
                count(*) AS attempts, coalesce(sum(cpu_s), 0) AS cpu_s,
                sum(coalesce(max_rss_kb * 1024 / 1e9 * secs(started_at, finished_at), 0))
                    AS memory_gb_s,
                sum(coalesce(secs(started_at, finished_at), 0)) AS slot_s
            FROM attempts JOIN labels USING (instance_id)
            WHERE {self._days()} AND worker IS NOT NULL GROUP BY ALL""")

    def failures(self, named: Any) -> list[Row]:
        groups: dict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
        for row in self._attempts:
            if row["state"] == "FAILED":
                text = row["reason"] or row["error_line"] or ""
                fingerprint = row["fingerprint"] or named(text)
                groups[fingerprint, row["project"], row["workflow"], row["task"]].append(row)
        found = []
        for (fingerprint, project, workflow, task), rows in groups.items():
            for day in {row["finished_at"].date() for row in rows}:
                if not self.first <= day <= self.last:
                    continue
                seen = [row for row in rows if row["finished_at"].date() <= day]
                seen = [r for r in seen if r["finished_at"].date() > day - timedelta(days=60)]
                of_day = [row for row in seen if row["finished_at"].date() == day]
                last = max(of_day, key=lambda row: (row["finished_at"], row["attempt_id"]))
                found.append(
                    {
                        "day": day,
                        "fingerprint": fingerprint,
                        "project": project,
                        "workflow": workflow,
                        "task": task,
                        "sample": last["error_line"] or last["reason"] or "",
                        "first_seen": min(row["finished_at"] for row in seen),
                        "last_seen": last["finished_at"],
                        "count": len(seen),
                        "count_day": len(of_day),
                    }
                )
        return found

    def flapping(self) -> list[Row]:
        ends: dict[tuple[str, str, str], dict[int, Row]] = defaultdict(dict)
        for row in sorted(self._attempts, key=lambda one: one["attempt"]):
            day = row["finished_at"].date()
            if row["state"] in ("SUCCEEDED", "FAILED") and self._in_window(day, 60):
                ends[row["project"], row["workflow"], row["task"]][row["instance_id"]] = row
        found = []
        for (project, workflow, task), by_run in ends.items():
            rows = sorted(by_run.values(), key=lambda r: (r["finished_at"], r["attempt_id"]))[-20:]
            failed = [row["state"] == "FAILED" for row in rows]
            changes = sum(a != b for a, b in pairwise(failed))
            retried = [
                row["state"] == "SUCCEEDED" and row["attempt"] > 1 and row["waiting_since"] is None
                for row in rows
            ]
            if changes:
                found.append(
                    {
                        "day": self.last,
                        "project": project,
                        "workflow": workflow,
                        "task": task,
                        "runs": len(rows),
                        "changes": changes,
                        "failed_rate": sum(failed) / len(rows),
                        "retried_rate": sum(retried) / len(rows),
                        "last_seen": rows[-1]["finished_at"],
                    }
                )
        return found

    def _in_window(self, day: date, days: int) -> bool:
        return self.last - timedelta(days=days - 1) <= day <= self.last

    def _samples(self) -> list[Row]:
        """Return subjects, starts, ends, durations and waits of all that succeeded."""
        return self._rows(f"""
            SELECT project, workflow, task, started_at, finished_at,
                secs(started_at, finished_at) AS duration, secs(queued_at, started_at) AS wait
            FROM attempts WHERE state = 'SUCCEEDED' AND started_at IS NOT NULL
                AND {self._window(60)}
            UNION ALL
            SELECT project, workflow, '', started_at, finished_at,
                secs(started_at, finished_at), secs(created_at, started_at)
            FROM instances WHERE state = 'SUCCEEDED' AND started_at IS NOT NULL
                AND {self._window(60)}""")

    def baselines(self) -> list[Row]:
        durations = _levels(self._samples(), "duration")
        waits = _levels(self._samples(), "wait")
        found = []
        for key, values in durations.items():
            p50, p95, mad = _robust(values)
            wait = _chosen(waits, *key)
            wait_p50, wait_p95, wait_mad = _robust(wait) if wait else (None, None, None)
            found.append(
                {
                    "day": self.last,
                    **dict(zip(("project", "workflow", "task"), key[0], strict=True)),
                    "weekday": key[1],
                    "hour": key[2],
                    "n": len(values),
                    "p50_s": p50,
                    "p95_s": p95,
                    "mad_s": mad,
                    "late_after_s": max(1.5 * p95, p50 + 3 * mad),
                    "wait_n": len(wait) if wait else None,
                    "wait_p50_s": wait_p50,
                    "wait_p95_s": wait_p95,
                    "wait_mad_s": wait_mad,
                }
            )
        return found

    def baseline_errors(self) -> list[Row]:
        rows = [row for row in self._samples() if row["task"] == ""]
        tested: dict[tuple[str, str], list[tuple[float, float | None, bool, bool]]]
        tested = defaultdict(list)
        for step in range(7):
            day = self.last - timedelta(days=step)
            past = _levels([r for r in rows if r["finished_at"].date() < day], "duration")
            for row in rows:
                if row["finished_at"].date() != day:
                    continue
                at = row["started_at"]
                subject = (row["project"], row["workflow"], "")
                if values := _chosen(past, subject, at.weekday(), at.hour):
                    p50, p95, mad = _robust(values)
                    real = row["duration"]
                    error = abs(real - p50)
                    late = real > max(1.5 * p95, p50 + 3 * mad)
                    share = error / real if real else None
                    tested[subject[:2]].append((error, share, real <= p95, late))
        return [
            {
                "day": self.last,
                "project": project,
                "workflow": workflow,
                "runs": len(ones),
                "error_p50_s": median(one[0] for one in ones),
                "error_share_p50": median(one[1] for one in ones if one[1] is not None),
                "within_p95": sum(one[2] for one in ones) / len(ones),
                "late_share": sum(one[3] for one in ones) / len(ones),
            }
            for (project, workflow), ones in tested.items()
        ]

    def _fired(self) -> list[Row]:
        return self._rows(
            "SELECT *, hour(logical_time) * 60 + minute(logical_time) AS of_day, "
            "CAST(logical_time AS DATE) AS logical_day, secs(logical_time, started_at) AS skew "
            f"FROM instances WHERE trigger = 'schedule' AND {self._window(28)}"
        )

    def schedule_minutes(self) -> list[Row]:
        fired = self._fired()
        days = max(1, len({row["logical_day"] for row in fired}))
        found = []
        for scope, of in (("day", 1440), ("hour", 60)):
            minutes: dict[int, list[Row]] = defaultdict(list)
            for row in fired:
                minutes[row["of_day"] % of].append(row)
            by_number = sorted(minutes, key=lambda one: (-len(minutes[one]), one))
            fullest = by_number[:20] if scope == "day" else []
            for minute, rows in minutes.items():
                skews = [row["skew"] for row in rows if row["skew"] is not None]
                daily: dict[date, int] = defaultdict(int)
                for row in rows:
                    daily[row["logical_day"]] += 1
                found.append(
                    {
                        "day": self.last,
                        "scope": scope,
                        "minute": minute,
                        "starts_mean": len(rows) / days,
                        "starts_max": max(daily.values()),
                        "skew_p50_s": _quantile(skews, 0.5),
                        "skew_p95_s": _quantile(skews, 0.95),
                        "skew_max_s": max(skews, default=None),
                        "is_hot": minute in fullest and len(rows) >= 3 * len(fired) / 1440,
                    }
                )
        return found

    def fires(self) -> Mapping[int, Mapping[int, float]]:
        """Return the starts of each schedule by minute of the day, for a day."""
        fired = self._fired()
        days = max(1, len({row["logical_day"] for row in fired}))
        found: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for row in fired:
            found[row["schedule_id"]][row["of_day"]] += 1 / days
        return found

    def capacity(self) -> list[Row]:
        by_group: dict[str, dict[int, int]] = defaultdict(dict)
        for (kind, name, hour), (most, _) in self._hours(60).items():
            if kind == "needed":
                by_group[name][hour] = most
        found = []
        for name, hours in by_group.items():
            first = _day(min(hours))
            days = [first + timedelta(days=n) for n in range((self.last - first).days + 1)]
            levels = [[hours.get(_hours(day) + hour, 0) for hour in range(24)] for day in days]
            assert len(days) < 14, "these histories are too short for a trend"
            for ahead in range(1, 8):
                wanted = self.last + timedelta(days=ahead)
                same = [at for at, day in enumerate(days) if day.weekday() == wanted.weekday()]
                same = same if len(same) >= 4 else list(range(len(days)))
                for hour in range(24):
                    values = [float(levels[at][hour]) for at in same]
                    found.append(
                        {
                            "day": self.last,
                            "forecast_day": wanted,
                            "hour": hour,
                            "worker_group": name,
                            "slots": ceil((_quantile(values, 0.95) or 0) - 1e-9),
                            "expected": _quantile(values, 0.5),
                            "tested_hours": 0,
                            "error_p50": None,
                            "within_p95": None,
                        }
                    )
        return found


def _spread(value: str, name: str, percentiles: Sequence[int] = (50, 95, 99)) -> str:
    quantiles = ", ".join(
        f"quantile_cont({value}, {one / 100}) AS {name}_p{one}" for one in percentiles
    )
    return f"{quantiles}, avg({value}) AS {name}_mean, max({value}) AS {name}_max"


def _intervals(row: Row) -> Iterable[tuple[str, str, int, int]]:
    """Yield what an attempt counts for: kind, name, start, end; none is empty."""
    finished = _us(row["finished_at"])
    ran = row["worker"] is not None and row["started_at"] is not None
    found = []
    if ran:
        started = min(_us(row["started_at"]), finished)
        found += [("worker", row["worker"], started, finished)]
        found += [("running", row["worker_group"], started, finished)]
    else:
        started = finished
    if row["queued_at"] is not None:
        queued = min(_us(row["queued_at"]), started if not ran else _us(row["started_at"]))
        found += [("waiting", row["worker_group"], queued, started)]
        found += [("needed", row["worker_group"], queued, finished)]
    elif ran:
        found += [("needed", row["worker_group"], started, finished)]
    return [one for one in found if one[3] > one[2]]


_Levels = Mapping[tuple[tuple[str, str, str], int, int], list[float]]


def _levels(rows: Sequence[Row], name: str) -> _Levels:
    """Return the values that count for each subject, weekday and hour; -1: any."""
    found: dict[tuple[tuple[str, str, str], int, int], list[float]] = defaultdict(list)
    for row in rows:
        if row[name] is None:
            continue
        at, subject = row["started_at"], (row["project"], row["workflow"], row["task"])
        for weekday in (at.weekday(), -1):
            for hour in (at.hour, -1):
                found[subject, weekday, hour].append(row[name])
    return {key: v for key, v in found.items() if len(v) >= 20 or key[1:] == (-1, -1)}


def _chosen(
    levels: _Levels, subject: tuple[str, str, str], weekday: int, hour: int
) -> list[float] | None:
    for key in ((weekday, hour), (-1, hour), (weekday, -1), (-1, -1)):
        if (subject, *key) in levels:
            return levels[subject, *key]
    return None


def _robust(values: list[float]) -> tuple[float, float, float]:
    p50, p95 = (float(one) for one in np.quantile(values, (0.5, 0.95)))
    return p50, p95, median(abs(one - p50) for one in values)


def _quantile(values: Sequence[float], level: float) -> float | None:
    return float(np.quantile(values, level)) if values else None


def _worker_day(day: date, worker: str) -> Row:
    counts = dict.fromkeys(("attempts", "failed", "lost", "hours", "slots"), 0)
    return {"day": day, "worker": worker, "busy_s": 0.0, **counts}


def _us(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _hours(day: date) -> int:
    return (day - date(1970, 1, 1)).days * 24


def _day(hour: int) -> date:
    return date(1970, 1, 1) + timedelta(days=hour // 24)
