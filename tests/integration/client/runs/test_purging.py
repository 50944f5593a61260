"""``shoal purge`` on a real cluster."""

import re
from pathlib import Path

import pytest

from shoal.client.local.cluster import LocalCluster
from tests.integration.client.conftest import Shoal
from tests.integration.client.scripted_server import Answer, Request, scripted_server
from tests.support.processes import export_history

FLOW = 'name: purged\ntasks:\n  - {name: a, type: SHELL, params: {script: "echo hello"}}\n'


def test_purge_counts_and_then_deletes_what_is_over(here: Shoal, cluster: LocalCluster) -> None:
    Path("purged.yaml").write_text(FLOW)
    assert here("apply", ".").status == 0
    ids = [here("run", "purged", "--wait", "--json").json["id"] for _ in range(2)]
    counted = here("purge", "--older-than", "0s", "--dry-run", "--workflow", "purged", "--json")
    assert counted.status == 0, counted.err
    assert counted.json["finished_at"] is not None
    # The newest ten of each workflow stay.
    assert (counted.json["dry_run"], counted.json["instances"]) == (True, 0)
    shown = here("purge", "--older-than", "0s", "--project", "default")
    assert shown.status == 0
    assert re.search(r"^store +gone +rows", shown.out, re.MULTILINE)
    assert re.search(r"^instances +0 ", shown.out, re.MULTILINE)
    assert "the database (sqlite) has" in shown.out
    assert here("instance", str(ids[0])).status == 0
    runs = [here("run", "purged", "--wait", "--json").json["id"] for _ in range(10)]
    export_history(cluster)
    gone = here("purge", "--older-than", "0s", "--workflow", "default/purged", "--json").json
    assert (gone["instances"], gone["attempts"], gone["held"]) == (2, 2, 0)
    assert here("instance", str(runs[0])).status == 0
    past = here("instance", str(ids[0]))
    assert past.status == 0
    assert "out of the exported history" in past.out
    assert here("instance", str(ids[0]), "--json").json["attempts"][0]["task"] == "a"
    listed = here("instances", "purged", "--past", "--json").json
    assert [one["id"] for one in listed if not one["in_database"]] == sorted(ids, reverse=True)
    assert len(listed) == 12
    assert re.search(rf"^ *{ids[0]} .* yes", here("instances", "--past").out, re.MULTILINE)
    assert here("instances", "purged", "--past", "--state", "FAILED", "--json").json == []
    assert here("logs", f"{ids[0]}:a").status == 3, "there is no archive of logs"
    assert here("instance", "899999999").status == 3


def test_rows_that_wait_for_the_export_are_told(
    shoal: Shoal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A master may export at any moment, so a real cluster cannot be asked for them."""
    counts = dict.fromkeys(("instances", "attempts", "events", "commands", "backfills"), 0)
    purge = {
        "id": 7,
        "partitions": 128,
        "partitions_done": 128,
        "dry_run": True,
        "finished_at": "2026-03-01T06:00:00Z",
        "oldest": None,
        "held": 1_234,
        "held_because": "the last export was 20 minutes ago",
        **counts,
    }
    stores = {"kind": "sqlite", "bytes": 2**20, "free_bytes": None, "stores": []}

    def answer(request: Request) -> Answer:
        return Answer(200, stores if request.path.endswith("/stores") else purge)

    with scripted_server() as server:
        monkeypatch.setenv("SHOAL_URL", server.url)
        monkeypatch.setenv("SHOAL_TOKEN", "secret")
        server.answer = answer
        shown = shoal("purge", "--dry-run")
    assert shown.status == 0, shown.err
    assert (
        "1,234 rows stay until they were exported: the last export was 20 minutes ago; "
        "`shoal insight export` exports them now"
    ) in " ".join(shown.out.split())


def test_past_runs_have_filters_of_their_own(here: Shoal) -> None:
    for wrong in (("--past", "--label", "a=b"), ("--from", "2026-01-01")):
        refused = here("instances", *wrong)
        assert refused.status == 2
        assert "--past" in refused.err


def test_purge_refuses_what_it_cannot_understand(here: Shoal) -> None:
    refused = here("purge", "--older-than", "a while")
    assert refused.status == 2
    assert "--older-than" in refused.err
    for long in ("99999999999d", "999999d"):
        refused = here("purge", "--older-than", long)
        assert refused.status == 2
        assert "before the first date" in " ".join(refused.err.replace("│", "").split())
    assert here("purge", "--workflow", "nowhere").status == 3
