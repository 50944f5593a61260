"""The pages of alerts in a real browser, on a real cluster with a server that takes messages."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from shoal.api.pages.ui import BUILT
from shoal.client.local.cluster import LocalCluster
from tests.acceptance.rest import Rest
from tests.acceptance.test_ui import CHROMIUM, KNOWN, NEEDED, UI, node
from tests.support.http_sink import http_sink
from tests.support.people import add_user
from tests.support.waiting import DEADLINE_S


def test_what_people_do_about_alerts(cluster: LocalCluster, rest: Rest, tmp_path: Path) -> None:
    if CHROMIUM is None or not (BUILT / "index.html").is_file():
        pytest.skip(NEEDED)
    program = node()
    rest.publish("alarming", {"load": {"script": "echo 'no such table' >&2; exit 3"}})
    assert rest.http.put("/projects/nothing", json={}).status_code in (200, 201)
    reader = add_user(rest.http, "ruth", "Ruth Reader")
    answer = rest.http.put("/projects/default/members/user/ruth", json={"role": "reader"})
    assert answer.status_code in (200, 201), answer.text
    with http_sink() as sink:
        there = {
            "project": "default",
            "workflow": "alarming",
            "sink": sink.url,
            "admin": "alma",
            "password": add_user(rest.http, "alma", "Alma Rao", is_admin=True),
            "reader": "ruth",
            "readerPassword": reader,
            "folder": str(tmp_path),
        }
        done = subprocess.run(
            [program, UI / "e2e" / "alerting.mjs", cluster.url, json.dumps(there)],
            capture_output=True,
            text=True,
            timeout=4 * DEADLINE_S,
            env={**os.environ, "SHOAL_CHROMIUM": CHROMIUM},
        )
        assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [fault for fault in found["faults"] if not fault.startswith(KNOWN)] == []
    assert {page: what for page, what in found["axe"].items() if what} == {}
    assert {page: pixels for page, pixels in found["overhang"].items() if pixels > 0} == {}
    assert found["raw"] == {}
    assert found["facts"] == {
        "badOption": "String should match pattern '^$|^https?://[^\\s]+$'",
        "test": "200 thanks",
        "next": "Add a receiver",
        "rule": [
            ["run.failed", "task.failed"],
            ["alarming"],
            ["on-call"],
            0,
            [{"after": 900, "receivers": ["on-call"]}],
        ],
        "labels": 0,
        "watch": [
            False,
            ["workflow.not-started", "workflow.low-success-rate"],
            ["*"],
            "06:15",
            7,
            {"below": 0.75, "runs": 20},
        ],
        "preview": "Oh: alarming",
        "answer": "200 thanks",
        "tries": "200 thanks",
        "why": [["alert", "!OpenAlert #on-call"], ["none", "the rule is disabled"]],
        "canAgain": 0,
        "silence": ["alarming", "night"],
        "hours": [4],
        "messages": True,
        "changed": ['"severity": "critical",'],
        "mine": ["mine", "warning"],
        "chinese": ["告警", 1],
        "reader": ["true", True],
    }
    kinds = [one["kind"] for one in sink.received]
    assert kinds.count("TEST") == 1
    assert "FIRING" in kinds
