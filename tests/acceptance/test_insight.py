"""Run history end to end: runs, their export, the nightly workflow, roll-ups in the database."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from shoal.insight.serving.results import RESULTS
from shoal.sql import Database
from shoal.sql.repositories.insight.rollups import RollupBlock, RollupDay
from tests.acceptance.rest import Rest
from tests.support.processes import export_history, shoal
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S, wait_past_midnight

RUNS = 3


@dataclass
class Insight:
    """A cluster with a history of some runs."""

    cluster: LocalCluster
    rest: Rest
    day: date  # in UTC, of all runs

    def shoal(self, *arguments: str, code: int = 0) -> str:
        """Run a command on the cluster's machine; return what it has said."""
        done = shoal(self.cluster, *arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    def rollups(self) -> tuple[list[RollupDay], dict[str, list[RollupBlock]]]:
        """Return which results there are, and all rows of today by job."""

        async def read() -> tuple[list[RollupDay], dict[str, list[RollupBlock]]]:
            url = f"sqlite:///{self.cluster.data}/shoal.db"
            async with Database(url) as database, database.unit_of_work(read_only=True) as uow:
                found = {}
                for job, result in RESULTS.items():
                    if result.has_project:
                        found[job] = await uow.rollups.blocks(job, self.day, self.day, None)
                    else:
                        found[job] = await uow.rollups.of_cluster(job, self.day, self.day)
                return await uow.rollups.days(), found

        return asyncio.run(read())


@pytest.fixture(scope="module")
def insight(spark_classes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Insight]:
    """Two workflows have run thrice each; one of them fails."""
    data = tmp_path_factory.mktemp("insight")
    (data / "shoal.toml").write_text(f"[cluster]\nsession_timeout_s = {STEADY_SESSION_S}\n")
    with (
        LocalCluster(data, masters=2, workers=1, slots=4, api_port=free_port()) as running,
        closing(Rest(running.url, running.token)) as rest,
    ):
        first = {"script": "sleep 0.2"}
        rest.publish("good", {"a": first, "b": {"script": "true", "depends_on": ["a"]}})
        rest.publish("bad", {"a": first, "b": {"script": "echo boom >&2; exit 3"}})
        wait_past_midnight()
        runs = [rest.start(name) for _ in range(RUNS) for name in ("good", "bad")]
        ended = [rest.wait_for(one, timeout_s=6 * DEADLINE_S) for one in runs]
        [day] = {one["finished_at"][:10] for one in ended}
        yield Insight(running, rest, date.fromisoformat(day))


def of_workflow(blocks: list[RollupBlock], name: str) -> list[Any]:
    return [row for block in blocks if block.workflow == name for row in block.rows]


def test_setup_makes_a_project_whose_runs_put_roll_ups_into_the_database(insight: Insight) -> None:
    export_history(insight.cluster)
    told = json.loads(insight.shoal("insight", "setup", "--spark", "local[2]", "--json"))
    status = json.loads(insight.shoal("insight", "status", "--json"))
    assert told["parameters"] == {
        "history": status["url"],
        "spark": "local[2]",
        "spark_memory": "1g",
        "spark_scratch": "",
    }
    assert told["workflows"] == {"daily": 1}
    [schedule] = insight.rest.get("/projects/insight/workflows/daily/schedules")["items"]
    assert (schedule["cron"], schedule["timezone"]) == ("0 15 1 * * ?", "UTC")

    run = ["run", "insight/daily", "-p", f"day={insight.day}", "--wait"]
    insight.shoal(*run)
    found = insight.rest.until(  # masters look for results every 20 seconds
        insight.rollups, lambda seen: len(seen[0]) == len(RESULTS), timeout_s=4 * DEADLINE_S
    )
    days, rows = found
    assert {(one.job, one.day) for one in days} == {(job, insight.day) for job in RESULTS}
    [good] = of_workflow(rows["workflow_days"], "good")
    assert (good["runs"], good["succeeded"], good["by_request"]) == (RUNS, RUNS, RUNS)
    assert good["duration_p50"] >= 0.2
    [bad] = of_workflow(rows["workflow_days"], "bad")
    assert (bad["runs"], bad["failed"]) == (RUNS, RUNS)
    critical = {row["task"]: row for row in of_workflow(rows["critical_days"], "good")}
    assert {task: row["runs"] for task, row in critical.items()} == {"a": RUNS, "b": RUNS}
    assert critical["a"]["gain_mean_s"] >= 0.15
    [failure] = of_workflow(rows["failures"], "bad")
    assert (failure["task"], failure["count"]) == ("b", RUNS)
    assert "boom" in failure["sample"]

    insight.shoal(*run)
    insight.shoal("insight", "load")
    again, same = insight.rollups()
    assert {(one.job, one.day) for one in again} == {(one.job, one.day) for one in days}
    # Of what had run before: meanwhile the first run of the jobs itself may be in the history.
    assert {job: rows_of(blocks) for job, blocks in same.items()} == {
        job: rows_of(blocks) for job, blocks in rows.items()
    }
    [workers] = same["worker_days"]
    assert len({row["worker"] for row in workers.rows}) == len(workers.rows)

    # A run for a date is about the day before it: there is nothing yet.
    backfill = ["backfill", "insight/daily", "--from", f"{insight.day}", "--to", f"{insight.day}"]
    insight.shoal(*backfill, "--by", "day", "--task", "days", "--only", "--wait")
    insight.shoal("insight", "load")
    [before] = [
        one
        for one in insight.rollups()[0]
        if (one.job, one.day) == ("task_days", insight.day - timedelta(days=1))
    ]
    assert before.rows == 0


def rows_of(blocks: list[RollupBlock]) -> list[str]:
    """Return the rows of the project of the fixture as texts, in an order of their own."""
    return sorted(
        json.dumps([block.project, block.workflow, row], sort_keys=True)
        for block in blocks
        for row in block.rows
        if block.project == "default"
    )


def test_setup_again_changes_what_is_named_and_nothing_else(insight: Insight) -> None:
    insight.shoal("insight", "setup", "--project", "other", "--history", "/mnt/history")
    told = json.loads(
        insight.shoal("insight", "setup", "--project", "other", "--memory", "2g", "--json")
    )
    assert told["parameters"]["history"] == "/mnt/history"
    assert (told["parameters"]["spark"], told["parameters"]["spark_memory"]) == ("local[*]", "2g")
    assert told["workflows"] == {"daily": 1}
    said = insight.shoal("insight", "setup", "--project", "other")
    assert "= other/daily  unchanged, version 1" in said
    assert "(set)" not in said
    assert "shoal run other/daily --wait" in said
    assert Path(insight.cluster.data, "history").is_dir()


def test_machine_without_a_history_says_what_to_name(insight: Insight, tmp_path: Path) -> None:
    environment = {"SHOAL_URL": insight.cluster.url, "SHOAL_TOKEN": insight.cluster.token}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("SHOAL_")}
    done = subprocess.run(
        [sys.executable, "-m", "shoal.client.cli", "insight", "setup", "--project", "third"],
        env={**kept, **environment, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_S,
    )
    assert done.returncode != 0
    assert "--history URL" in done.stderr
