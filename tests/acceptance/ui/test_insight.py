"""Insight in a real browser: from runs by export, Spark jobs and loading to its pages."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from shoal.sql import Database
from tests.acceptance.rest import Rest
from tests.acceptance.ui.browser import browse, require_browser
from tests.support.insight import trends
from tests.support.people import add_user
from tests.support.processes import export_history, shoal
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S, wait_past_midnight

RUNS = 3
_USUAL = {  # seconds: median and 95th percentile
    ("default", "live"): {"": (600.0, 700.0), "long": (600.0, 700.0)},
    ("default", "slow"): {"": (0.5, 0.6), "long": (0.5, 0.6)},
    ("default", "ended"): {"": (1.0, 1.2), "load": (0.6, 0.8), "report": (0.1, 0.2)},
}


class Site:
    """A cluster with a browser before it."""

    def __init__(self, cluster: LocalCluster, rest: Rest, folder: Path) -> None:
        self.cluster, self.rest = cluster, rest
        self.there: dict[str, Any] = {
            "folder": str(folder),
            "admin": "alma",
            "password": add_user(rest.http, "alma", "Alma Rao", is_admin=True),
            "reader": "ruth",
            "readerPassword": add_user(rest.http, "ruth", "Ruth Reader"),
        }

    def look(self, part: str, **more: Any) -> dict[str, Any]:
        """Return what the browser has found."""
        found: dict[str, Any] = browse(
            self.cluster, "insight.mjs", {**self.there, "part": part, **more}
        )
        return found

    def shoal(self, *arguments: str) -> None:
        """Run a command on the cluster's machine."""
        done = shoal(self.cluster, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr

    async def with_weeks(self, last: date) -> None:
        """Put weeks of results beside those of today."""
        async with Database(f"sqlite:///{self.cluster.data}/shoal.db") as database:
            await trends.fill(database, last, 56)
            await trends.set_baselines(database, last, _USUAL)


@pytest.fixture(scope="module")
def site(spark_classes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster on which nothing has run; its folder has a space in its name."""
    require_browser()
    data = tmp_path_factory.mktemp("insight pages")
    (data / "shoal.toml").write_text(f"[cluster]\nsession_timeout_s = {STEADY_SESSION_S}\n")
    with (
        LocalCluster(data, masters=2, workers=1, slots=8, api_port=free_port()) as running,
        closing(Rest(running.url, running.token)) as rest,
    ):
        yield Site(running, rest, tmp_path_factory.mktemp("pictures"))


def test_runs_become_pages_by_export_jobs_and_loading(site: Site) -> None:
    rest = site.rest
    first = {"script": "sleep 0.2"}
    rest.publish("good", {"a": first, "b": {"script": "true", "depends_on": ["a"]}})
    rest.publish("bad", {"a": first, "b": {"script": "echo boom >&2; exit 3"}})
    wait_past_midnight()
    runs = [rest.start(name) for _ in range(RUNS) for name in ("good", "bad")]
    ended = [rest.wait_for(one, timeout_s=6 * DEADLINE_S) for one in runs]
    [day] = {one["finished_at"][:10] for one in ended}
    facts = site.look("none", good=runs[0])
    command = "shoal insight setup"
    assert facts == {"command": command, "copied": command, "baseline": command, "eta": 0}

    export_history(site.cluster)
    site.shoal("insight", "setup", "--spark", "local[2]")
    site.shoal("run", "insight/daily", "-p", f"day={day}", "--wait")
    site.shoal("insight", "load")
    assert site.look("made", good=runs[0]) == {
        "until": day,
        "tiles": [["Runs", "6"], ["Failure rate", "50 %"]],
        "lastDay": ["3", "0", "3", "0"],
        "causes": [["boom", "3"]],
        "attempts": RUNS,
        "tasks": ["a", "b"],
        "verdict": "unknown",
        "compared": 2,
    }


def test_weeks_of_results_in_every_look(site: Site) -> None:
    rest = site.rest
    last = datetime.now(UTC).date()
    asyncio.run(site.with_weeks(last))
    for project in ("flights", "sales", "ml"):
        rest.put(f"/projects/{project}", {})
    rest.put("/projects/sales/members/user/ruth", {"role": "reader"})
    report = {"script": "true", "depends_on": ["load"]}
    rest.publish("ended", {"load": {"script": "sleep 4"}, "report": report})
    ended = rest.start("ended")
    started = {}
    for name in ("live", "slow"):
        rest.publish(name, {"long": {"script": "sleep 600"}})
        started[name] = rest.start(name)
    rest.wait_for(ended)
    for run in started.values():
        rest.until(partial(rest.tasks, run), lambda tasks: tasks["long"]["state"] == "RUNNING")
    week = {"from": f"{last - timedelta(days=13)}", "to": f"{last - timedelta(days=4)}"}
    facts = site.look("weeks", ended=ended, **started, **week)
    assert 8 <= facts.pop("eta") <= 10
    assert facts == {
        "verdict": "slower",
        "sentence": "▲slower It took # s, # s longer than usual (# s). Slowed down by: load +# s.",
        "first": "load",
        "headOfEnded": 0,
        "until": 1,
        "slow": 1,
        "days": "7",
        "chosen": "10",
        "slowest": "flights/nightly",
        "task": 1,
        "cursor": [1, True, True],
        "hour": "Tuesday 01:00–02:00 ",
        "chinese": ["洞察", "运行"],
        "seen": ["sales"],
        "moves": ["sales/stock"],
    }
    for run in started.values():
        rest.command("STOP", instance_id=run)
