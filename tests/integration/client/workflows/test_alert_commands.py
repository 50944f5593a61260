"""``shoal alerts`` and ``shoal alert`` on a real cluster, with a sink for what is sent."""

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.integration.client.conftest import Shoal, workflow
from tests.support.waiting import DEADLINE_S

PROJECT = "watched"
FILE = """\
channels:
  hook: {{kind: webhook, options: {{url: "{url}"}}}}
receivers:
  ops: {{members: [{{name: Ada, targets: [{{channel: hook}}]}}]}}
rules:
  night:
    triggers: [run.failed]
    workflows: [breaks-*]
    receivers: [ops]
    severity: critical
    group_for: 0s
    templates: {{subject: "{{{{ alerts[0].workflow }}}} is broken"}}
"""


class Sink(HTTPServer):
    """Takes messages."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.facts: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class _Taking(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        assert isinstance(self.server, Sink)
        self.server.facts.append(json.loads(body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Be silent."""


@pytest.fixture
def sink() -> Iterator[Sink]:
    with Sink() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def until(shoal: Shoal, count: int, *arguments: str) -> Any:
    """Ask until a list has so many items."""
    deadline = time.monotonic() + DEADLINE_S
    while len(found := shoal(*arguments, "--json", "--project", PROJECT).json) < count:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def test_from_a_file_to_a_message_and_what_people_do_then(here: Shoal, sink: Sink) -> None:
    mine = ("--project", PROJECT)
    assert here("apply", "-p", PROJECT).status == 2  # nothing is there
    workflow("breaks-often", "echo 'ERROR: no such table'; exit 3", f"project: {PROJECT}")
    assert here("apply", "breaks-often.yaml").status == 0
    nothing = here("alerts", *mine)
    assert "has no rules for alerts; make some with `shoal alert apply FILE`" in nothing.err
    Path("alerts.yaml").write_text(FILE.format(url=sink.url))
    applied = here("alert", "apply", "alerts.yaml", *mine)
    assert applied.status == 0, applied.err
    assert f"rule {PROJECT}/night: version 1" in applied.out + applied.err
    again = here("alert", "apply", "alerts.yaml", *mine, "--json").json
    assert [(one["thing"], one["version"]) for one in again] == [
        ("channel", 1),
        ("receiver", 1),
        ("rule", 1),
    ]

    tried = here("alert", "test", "hook", *mine)
    assert (tried.status, sink.facts[0]["kind"]) == (0, "TEST"), tried.err
    assert "sent by hook: 204" in tried.out + tried.err

    ran = here("run", "breaks-often", *mine, "--json").json
    [alert] = until(here, 1, "alerts")
    assert (alert["trigger"], alert["instance_id"]) == ("run.failed", ran["id"])
    deadline = time.monotonic() + DEADLINE_S
    while len(sink.facts) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert sink.facts[1]["subject"] == "breaks-often is broken"
    listed = here("alerts", *mine, "--state", "open").out
    assert "run.failed breaks-often" in listed
    assert "critical" in listed

    assert "alert servers: 1 at work" in here("status").out
    shown = here("alert", "show", str(alert["id"]), *mine).out
    assert "rule night, run" in shown
    assert "1 task failed" in shown
    why = here("alert", "why", str(ran["id"])).out
    assert f"rule night: alert {alert['id']}" in why
    assert "ops by hook: SENT" in why
    assert "the rule is not about task.failed" in why
    sent = here("alert", "messages", *mine, "--channel", "hook", "--json").json
    assert [(one["kind"], one["state"]) for one in sent] == [("FIRING", "SENT"), ("TEST", "SENT")]

    taken = here("alert", "ack", str(alert["id"]), *mine, "--json").json
    assert taken[0]["acknowledged_by"]
    made = here(
        "alert", "silence", "--for", "2h", "--workflow", "breaks-*", "--reason", "known", *mine
    )
    assert made.status == 0
    assert "no notification is sent for workflow breaks-*" in made.out + made.err
    here("run", "breaks-often", *mine, "--json")
    [silenced, _] = until(here, 2, "alerts")
    [silence] = here("alert", "silences", *mine, "--json").json
    assert (silenced["silenced_by"], silence["reason"]) == (silence["id"], "known")
    assert here("alert", "unsilence", str(silence["id"]), *mine).status == 0
    assert "nothing of project" in here("alert", "silences", *mine).err

    for thing, name in (("rule", "night"), ("receiver", "ops"), ("channel", "hook")):
        assert here("alert", "delete", thing, name, *mine).status == 0
        assert here("alert", f"{thing}s", name, *mine).status == 3


def test_what_is_shown_can_be_applied_again(here: Shoal, sink: Sink) -> None:
    mine = ("--project", f"{PROJECT}-2")
    Path("alerts.yaml").write_text(FILE.format(url=sink.url))
    assert here("alert", "apply", "alerts.yaml", *mine).status == 0
    for thing, name in (("rule", "night"), ("receiver", "ops"), ("channel", "hook")):
        Path("shown.yaml").write_text(here("alert", f"{thing}s", name, *mine).out)
        [stored] = here("alert", "apply", "shown.yaml", *mine, "--json").json
        assert (stored["thing"], stored["name"], stored["version"]) == (thing, name, 1)
        assert name in here("alert", f"{thing}s", *mine).out
    preview = here("alert", "preview", "alerts.yaml", "--rule", "night", *mine)
    assert preview.out.splitlines()[0] == "breaks-daily is broken"
    absent = here("alert", "preview", "alerts.yaml", "--rule", "day", *mine)
    assert absent.status == 2
    assert "has no rule day" in absent.err
    assert "webhook" in here("alert", "kinds").out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("channel: {}", "bad.yaml:1: channel: is not a known field; did you mean 'channels'?"),
        ("rules: [1]", "bad.yaml:1: rules: maps names to rules"),
        ("[]", "is a mapping with channels, receivers and rules"),
        ("rules:\n  x: {trigers: [run.failed], receivers: [a]}", "did you mean 'triggers'?"),
        (
            "rules:\n  x: {triggers: [run.failed], receivers: [a], group_for: soon}",
            "bad.yaml:2: rules.x.group_for",
        ),
        ("rules:\n  x: {triggers: [run.failed], receivers: [nobody]}", "no receiver nobody"),
        (
            "rules:\n  x: {triggers: [run.failed], receivers: [a], templates: {text: '{% for'}}",
            "templates.text: missing tag name",
        ),
    ],
)
def test_bad_file_is_told_and_nothing_is_stored(here: Shoal, text: str, says: str) -> None:
    Path("bad.yaml").write_text(text)
    ended = here("alert", "apply", "bad.yaml", "--project", PROJECT)
    assert ended.status == 2
    assert says in ended.err
    assert here("alert", "apply", "absent.yaml").status == 2


def test_wrong_usage(here: Shoal) -> None:
    for arguments, says in (
        (("silence",), "say how long"),
        (("silence", "--for", "soon"), "soon"),
        (("why",), "name a run, or an event"),
    ):
        ended = here("alert", *arguments)
        assert ended.status == 2
        assert says in ended.err
    assert here("alert", "show", "999999").status == 3
    assert here("alert", "test", "absent").status == 3
