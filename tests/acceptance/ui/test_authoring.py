"""Authoring in a real browser, on a real cluster: by mouse, by keyboard, as text, with others."""

from shoal.client.local.cluster import LocalCluster
from tests.acceptance.rest import Rest
from tests.acceptance.ui.browser import browse, require_browser
from tests.support.people import add_reader


def test_a_workflow_is_authored_in_the_browser(cluster: LocalCluster, rest: Rest) -> None:
    require_browser()
    reader = {"name": "rita", "password": add_reader(rest.http, "rita")}
    there = {"reader": reader, "token": cluster.token}
    facts = browse(cluster, "authoring.mjs", there, link=True)
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
