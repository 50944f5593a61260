"""The pages of operating, settings and administration in a real browser, on a real cluster."""

from pathlib import Path
from typing import Any

from shoal.client.local.cluster import LocalCluster
from tests.acceptance.rest import Rest
from tests.acceptance.ui.browser import browse, require_browser
from tests.support.people import add_user


def test_what_people_do_on_the_pages(cluster: LocalCluster, rest: Rest, tmp_path: Path) -> None:
    require_browser()
    tasks: dict[str, dict[str, Any]] = {
        "first": {"script": "echo hello"},
        "bad": {
            "script": "echo 'ERROR: no disk'; echo closing; exit 3",
            "depends_on": ["first"],
        },
        # Its beginning is not loaded when the page shows its end.
        "long": {"script": "echo needle; yes 'much ado about nothing' | head -c 400000; echo end"},
    }
    fires = [{"cron": "0 0 2 1 1 ?"}]
    rest.publish("managed", tasks, schedules=fires)
    failed = rest.start("managed")
    rest.wait_for(failed)
    rest.publish("managed", {**tasks, "bad": {"depends_on": ["first"]}}, schedules=fires)
    good = rest.start("managed")
    assert rest.wait_for(good)["state"] == "SUCCEEDED"
    rest.put("/projects/nothing", {})
    for n in range(120):  # more entries of the audit than one page has
        path = "/projects/nothing/parameters/often"
        rest.put(path, {"value": str(n)})
    there = {
        "project": "default",
        "admin": "uma",
        "password": add_user(rest.http, "uma", "Uma Rao", is_admin=True),
        "failed": failed,
        "good": good,
        "workflow": "managed",
        "folder": str(tmp_path),
    }
    facts = browse(cluster, "managing.mjs", there)
    assert facts == {
        "bulkWould": 1,
        "bulkRefusal": 1,
        "planned": 5,
        "backfilled": 5,
        "errorLine": "ERROR: no disk",
        "used": [True, True, True],
        "grid": [True, True, True],
        "days": 5,
        "dayFilledIn": ["2026-03-07", "2026-03-07"],
        "schedule": "paused and resumed",
        "parameter": "newer",
        "secretIsShown": False,
        "hasHost": 0,
        "probe": "ok",
        "changedLines": 2,
        "token": "shoal_pat_",
        "tokenIsShown": False,
        "chain": "whole",
        "mountsFew": True,
        "atFirst": 0,
        "atLast": 3,
        "hits": 1,
        "example": 4,
    }
