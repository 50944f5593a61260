"""Authoring in a real browser, on a real cluster: by mouse, by keyboard, as text, with others."""

import json
import os
import subprocess

import pytest

from shoal.api.pages.ui import BUILT
from shoal.client.local.cluster import LocalCluster
from shoal.client.rest.client import ShoalClient
from tests.acceptance.readers import add_reader
from tests.acceptance.rest import Rest
from tests.acceptance.test_ui import CHROMIUM, KNOWN, NEEDED, UI, node
from tests.support.waiting import DEADLINE_S

_READER = {"name": "rita", "password": "reads everything, touches nothing"}


def test_a_workflow_is_authored_in_the_browser(cluster: LocalCluster, rest: Rest) -> None:
    if CHROMIUM is None or not (BUILT / "index.html").is_file():
        pytest.skip(NEEDED)
    program = node()
    add_reader(cluster, rest, _READER)
    with ShoalClient(cluster.url, cluster.token) as client:
        link = f"{cluster.url}/sign-in#{client.create_sign_in_code()['code']}"
    there = {"reader": _READER, "token": cluster.token}
    done = subprocess.run(
        [program, UI / "e2e" / "authoring.mjs", cluster.url, link, json.dumps(there)],
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_S,
        env={**os.environ, "SHOAL_CHROMIUM": CHROMIUM},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [fault for fault in found["faults"] if not fault.startswith(KNOWN)] == []
    assert {page: what for page, what in found["axe"].items() if what} == {}
    facts = found["facts"]
    chain = ["first→second", "second→third"]
    assert facts["byMouse"] == {"tasks": ["first", "second", "third"], "edges": chain}
    assert (facts["undone"], facts["redone"]) == (chain[:1], chain)
    assert facts["ran"] == 3
    assert facts["byKeyboard"] == ["python_2→python"]
    assert "print(" in facts["rendered"]
    assert facts["pasted"] == ["python_2→python", "python_4→python_3"]
    assert facts["pastedElsewhere"] == ["first", "python", "python_2", "second", "third"]
    assert facts["typed"] == [*chain, "third→typed"]
    assert facts["textFollows"], "the form's change is the one line that it means"
    assert "duration" in facts["problem"]
    assert facts["badge"] == "1"
    assert facts["refusesPublishing"]
    assert facts["cell"]
    assert facts["setting"]
    assert facts["merged"], "changes of two windows in different tasks are joined"
    assert facts["conflict"] == ["first · description"]
    assert facts["decided"]
    places = facts["places"]
    assert (places["isKept"], places["isMoved"]) == (True, True), "nobody's moves are lost"
    assert facts["tookIn"] == [True, True], "theirs came, and ours stayed"
    assert facts["fires"] == ["06:00", "02:30"]
    assert facts["restored"] == ["first", "second", "third"]
    assert facts["discarded"]
    assert facts["survived"]
    assert "画布" in facts["chinese"]
    reader = facts["reader"]
    assert reader["sees"], "one layout for everybody"
    assert reader["isDisabled"]
    assert reader["tasks"]
    assert reader["publish"] == "true"
    assert "writer or owner in default" in reader["says"]
