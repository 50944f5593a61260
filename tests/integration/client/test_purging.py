"""``shoal purge`` on a real cluster."""

import re
from pathlib import Path

from tests.integration.client.conftest import Shoal

FLOW = 'name: purged\ntasks:\n  - {name: a, type: SHELL, params: {script: "echo hello"}}\n'


def test_purge_counts_and_then_deletes_what_is_over(here: Shoal) -> None:
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
    held = here("purge", "--older-than", "0s", "--workflow", "default/purged", "--json").json
    assert (held["instances"], held["held"]) == (0, 2)
    told = here("purge", "--older-than", "0s", "--workflow", "default/purged", "--dry-run").out
    assert "2 rows stay until they were exported" in " ".join(told.split())
    assert here("insight", "export").status == 0
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
