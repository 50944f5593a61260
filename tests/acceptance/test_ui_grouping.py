"""Groups of tasks, and many tasks on the canvas, in a real browser on a real cluster."""

import json
import os
import subprocess
from typing import Any

import pytest
import yaml

from shoal.api.pages.ui import BUILT
from shoal.client.local.cluster import LocalCluster
from shoal.client.rest.client import ShoalClient
from tests.acceptance.readers import add_reader
from tests.acceptance.rest import Rest
from tests.acceptance.test_ui import CHROMIUM, KNOWN, NEEDED, UI, node
from tests.support.waiting import DEADLINE_S

_MANY = 300
_READER = {"name": "greta", "password": "reads all groups, changes none of them"}


def test_tasks_are_grouped_and_folded_and_many_are_one_canvas(
    cluster: LocalCluster, rest: Rest
) -> None:
    if CHROMIUM is None or not (BUILT / "index.html").is_file():
        pytest.skip(NEEDED)
    program = node()
    add_reader(cluster, rest, _READER)
    tasks: dict[str, dict[str, Any]] = {
        "fetch": {"script": "true"},
        "load_a": {"script": "true", "depends_on": ["fetch"]},
        "load_b": {"script": "exit 3", "depends_on": ["fetch"]},
        "report": {"script": "true", "depends_on": ["load_a", "load_b"], "run_when": "all_done"},
    }
    rest.publish("grouped", tasks)
    run = rest.start("grouped")
    rest.wait_for(run)
    many = {
        f"t{n}": {"script": "true", "depends_on": [f"t{n - 20}"] if n > 19 else []}
        for n in range(_MANY)
    }
    rest.publish("many", many)
    many_run = rest.start("many")
    rest.wait_for(many_run)
    with ShoalClient(cluster.url, cluster.token) as client:
        link = f"{cluster.url}/sign-in#{client.create_sign_in_code()['code']}"
    done = subprocess.run(
        [
            program,
            UI / "e2e" / "grouping.mjs",
            cluster.url,
            link,
            json.dumps({"run": run, "manyRun": many_run, "reader": _READER}),
        ],
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
    assert facts["refusesName"]
    assert facts["stored"] == {"load": ["load_a", "load_b"]}
    edges = ["fetch→group:load", "group:load→report"]
    assert facts["folded"] == {"nodes": ["fetch", "group load", "report"], "edges": edges}
    assert facts["storedFold"] == ["load"], "one layout for everybody"
    assert facts["movedTogether"] == [True, True, True]
    assert facts["noDraft"], "groups are not a part of the definition"
    assert facts["worst"] == ["FAILED", "2 tasks · ✕ 1 · ✓ 1"]
    assert facts["unfolded"] == len(tasks)
    assert facts["staysFolded"] == ["load"], "who looks at a run changes nothing for others"
    assert facts["named"] == ["intake"]
    assert (facts["readerMay"], facts["readerChanges"]) == ("true", ["intake"])
    assert facts["many"] == [_MANY, True], "all are painted, one at most is an element"
    assert facts["chosen"]
    assert facts["dragged"]
    assert facts["rectangle"] == f"{facts['manyGrouped']} tasks chosen"
    assert facts["manyGrouped"] > _MANY / 2
    assert facts["manyFolded"] == [0, _MANY - facts["manyGrouped"] + 1]
    joined = facts["joined"]
    drafted = {task["name"]: task for task in yaml.safe_load(joined["text"])["tasks"]}
    assert facts["gridCell"] == f"t41 · #{many_run} · Succeeded"
    assert facts["gridScrolled"]
    assert facts["gridTitle"] == f"t105 · #{many_run} · Succeeded"
    assert facts["gridPainted"], "a coloured glyph, not a plain area"
    assert facts["gridOpened"] == "t105"
    assert joined["source"] in drafted[joined["target"]]["depends_on"]
