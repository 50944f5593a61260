"""The pages of alerts in a real browser, on a real cluster with a server that takes messages."""

from pathlib import Path

from shoal.client.local.cluster import LocalCluster
from tests.acceptance.rest import Rest
from tests.acceptance.ui.browser import browse, require_browser
from tests.support.people import add_reader, add_user
from tests.support.servers.http_sink import http_sink


def test_what_people_do_about_alerts(cluster: LocalCluster, rest: Rest, tmp_path: Path) -> None:
    require_browser()
    rest.publish("alarming", {"load": {"script": "echo 'no such table' >&2; exit 3"}})
    rest.put("/projects/nothing", {})
    reader = add_reader(rest.http, "ruth")
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
        facts = browse(cluster, "alerting.mjs", there)
    assert facts == {
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
