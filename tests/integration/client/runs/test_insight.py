"""What run history tells, as commands, on a real cluster."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from sqlalchemy import text

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.roles import load_cluster
from shoal.sql import Database
from tests.integration.client.conftest import Shoal, workflow
from tests.support.insight import rollups
from tests.support.insight.rollups import CLUSTER, DAY, baseline


def stored(cluster: LocalCluster, *results: tuple[str, rollups.Blocks]) -> None:
    """Let these be the results of ``DAY``."""

    async def store() -> None:
        async with Database(load_cluster(cluster.data).database) as database:
            for job, blocks in results:
                await rollups.store(database, job, DAY, blocks)

    asyncio.run(store())


def test_report_without_results_says_what_to_do(here: Shoal, cluster: LocalCluster) -> None:
    asyncio.run(emptied(cluster))
    found = here("insight", "report", "-o", "empty.html")
    assert found.status == 0, found.err
    assert "no results of run history" in found.err
    assert "There are no results of run history yet" in Path("empty.html").read_text()


async def emptied(cluster: LocalCluster) -> None:
    """Let there be no results."""
    async with (
        Database(load_cluster(cluster.data).database) as database,
        database.unit_of_work() as uow,
    ):
        await uow.connection.execute(text("DELETE FROM rollup_day"))
        await uow.commit()


def test_report_is_told_and_written(here: Shoal, cluster: LocalCluster) -> None:
    name = "<script>"
    every = [(job, {("p", "daily"): rows}) for job, rows in rollups.EVERY.items()]
    every += [(job, {CLUSTER: rows}) for job, rows in rollups.OF_CLUSTER.items()]
    failure = rollups.failure(sample=f"{name}alert(1)</script>\x1b[2J")
    stored(cluster, *every, ("failures", {("p", "daily"): [failure]}))
    found = here("insight", "report", "--days", "7", "--output", "report.html")
    assert found.status == 0, found.err
    assert "written: report.html" in found.err
    assert found.out.startswith("2026-01-25 to 2026-01-31")
    for heading in ("What fails", "What was used", "When it is full", "What is to come"):
        assert heading in found.out
    assert "\x1b" not in found.out
    assert "<script>alert(1)" in found.out
    page = Path("report.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    of_project = here("insight", "report", "--project", "p")
    assert "When it is full" not in of_project.out
    assert "move schedule 7 of p/daily" in of_project.out
    of_other = here("insight", "report", "--project", "default", "--json").json["minutes"]
    assert (of_other["minutes"], of_other["moves"]) == (None, [])
    told = here("insight", "report", "--json").json
    assert told["summary"]["total"]["runs"] == 1
    assert told["load"]["groups"][0]["worker_group"] == "default"
    unwritten = here("insight", "report", "-o", "no/such/folder/report.html")
    assert unwritten.status != 0
    assert "cannot be written" in unwritten.err


@pytest.mark.parametrize("days", ["0", "93"])
def test_days_that_make_no_sense_are_refused(here: Shoal, days: str) -> None:
    assert here("insight", "report", "--days", days).status == 2


def test_why_slow_says_what_took_longer(here: Shoal, cluster: LocalCluster) -> None:
    workflow("dawdles", "sleep 2.5")
    assert here("apply", "dawdles.yaml").status == 0
    run = here("run", "dawdles", "--wait", "--json").json
    nothing = here("insight", "why-slow", str(run["id"]))
    assert "nothing is known yet of what is usual" in nothing.out
    usual = [baseline("", 0.3, mad_s=0.01), baseline("only", 0.2, mad_s=0.01, wait_p50_s=0.0)]
    stored(cluster, ("baselines", {("default", "dawdles"): usual}))
    found = here("insight", "why-slow", str(run["id"]))
    assert found.status == 0, found.err
    first, _, _, row = found.out.splitlines()[:4]
    assert first.startswith(f"Run {run['id']} took ")
    # It slept for 2.5 s instead of 200 ms, and a busy machine adds to that.
    longer = re.search(r"longer than usual \(300ms\): only \+([0-9.]+)s", first)
    assert longer is not None, first
    assert float(longer[1]) > 2
    assert row.split()[0] == "only"
    assert "█" in row
    assert "▓" in row
    assert "longer" in row
    told = here("insight", "why-slow", str(run["id"]), "--json").json
    assert (told["run"]["verdict"], told["of"]) == ("slower", "2026-01-31")
    assert told["tasks"][0]["is_critical"]
    assert here("insight", "why-slow", "999999").status == 3


def test_open_run_says_when_it_is_expected_to_end(here: Shoal, cluster: LocalCluster) -> None:
    workflow("lasts", "sleep 120")
    assert here("apply", "lasts.yaml").status == 0
    usual = [baseline("", 0.1, late_after_s=0.2), baseline("only", 900.0)]
    stored(cluster, ("baselines", {("default", "lasts"): usual}))
    run = here("run", "lasts", "--json").json
    for _ in range(100):
        shown = here("instance", str(run["id"]))
        if "later than usual by" in shown.out:
            break
    assert "expected to end" in shown.out
    assert "later than usual by" in shown.out
    why = here("why", str(run["id"]))
    assert "usually takes 100ms; expected to end at" in why.out
    assert "later than usual by" in why.out
    found = json.loads(here("today", "--json").out)
    [lane] = [one for one in found["items"] if one["workflow"] == "lasts"]
    assert lane["runs"][0]["expected_end_at"]
    assert "expected to end" in here("today").out
    assert here("stop", str(run["id"])).status == 0


def test_setup_refuses_what_would_fail_at_night(here: Shoal) -> None:
    for option, value, says in (
        ("--history", "history", "neither a URL nor a folder from the root on"),
        ("--scratch", "./tmp", "neither a URL nor a folder from the root on"),
        ("--memory", "lots", "not a size that Java takes"),
        ("--memory", "100m", "at least 512m"),
    ):
        refused = here("insight", "setup", "--project", "nightly", option, value)
        assert refused.status == 2
        assert says in " ".join(refused.err.replace("│", "").split())
    assert here("workflows", "--project", "nightly").out.find("daily") < 0


def test_who_sees_one_project_simulates_it_with_slots_that_are_named(
    here: Shoal, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow("mine", "true", "project: theirs", "schedules:", '  - cron: "0 0 * * * ?"')
    assert here("apply", "mine.yaml").status == 0
    made = here("service-account", "add", "planner", "--project", "theirs", "--role", "reader")
    assert made.status == 0, made.err
    token = here("token", "add", "plan", "--service-account", "theirs/planner", "--json").json
    monkeypatch.setenv("SHOAL_TOKEN", token["token"])
    monkeypatch.setenv("SHOAL_URL", cluster.url)
    found = here("simulate", "--days", "1", "--slots", "3", "--json")
    assert found.status == 0, found.err
    assert [one["name"] for one in found.json["workflows"]] == ["theirs/mine"]
    assert [(one["name"], one["slots"]) for one in found.json["groups"]] == [("default", 3)]
    told = " ".join(here("simulate", "--days", "1").err.split())
    assert "name the slots, --slots 8 or --group etl=8" in told
