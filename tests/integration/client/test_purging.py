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
    gone = here("purge", "--older-than", "0s", "--workflow", "default/purged", "--json").json
    assert (gone["instances"], gone["attempts"]) == (2, 2)
    assert [here("instance", str(one)).status for one in (ids[0], runs[0])] == [3, 0]


def test_purge_refuses_what_it_cannot_understand(here: Shoal) -> None:
    refused = here("purge", "--older-than", "a while")
    assert refused.status == 2
    assert "--older-than" in refused.err
    assert here("purge", "--workflow", "nowhere").status == 3
