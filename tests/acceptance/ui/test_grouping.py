"""Groups of tasks, and many tasks on the canvas, in a real browser on a real cluster."""

from typing import Any

import yaml

from shoal.client.local.cluster import LocalCluster
from tests.acceptance.rest import Rest
from tests.acceptance.ui.browser import browse, require_browser
from tests.support.people import add_reader

_MANY = 300


def test_tasks_are_grouped_and_folded_and_many_are_one_canvas(
    cluster: LocalCluster, rest: Rest
) -> None:
    require_browser()
    reader = {"name": "greta", "password": add_reader(rest.http, "greta")}
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
    facts = browse(
        cluster, "grouping.mjs", {"run": run, "manyRun": many_run, "reader": reader}, link=True
    )
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
    assert facts["rectangle"] == f"{facts['manyGrouped']} tasks selected"
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
