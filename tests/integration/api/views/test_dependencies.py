"""Which workflows wait for which on a day."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.runs.states import TaskState, WorkflowState
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.integration.api.views.runs import happened

DAY = datetime(2026, 3, 11, tzinfo=UTC)
_T, _W = TaskState, WorkflowState


async def graph(api: Api, project: str = "p", **query: Any) -> Any:
    """Ask for the graph of a project on the day."""
    headers = query.pop("headers", {})
    answer = await api.client.get(
        f"{PREFIX}/projects/{project}/dependency-graph",
        params={"date": "2026-03-11", **query},
        headers=headers,
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def waits(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A task that waits for runs of other workflows."""
    return {"name": "wait", "type": "DEPENDENT", "params": {"when": {"all": items}}, **more}


async def grant(api: Api, giver: str, taker: str, what: str) -> None:
    """Let the tasks of a project see or run those of another one."""
    path = f"{PREFIX}/projects/{giver}/grants/{taker}"
    assert (await api.client.put(path, json={"what": what})).status_code in (200, 201)


async def chain(api: Api) -> None:
    """p/source <- p/middle <- p/last, which also runs q/child; p/alone names nobody."""
    for name in ("source", "alone"):
        await api.publish(name)
    await api.publish("child", "q")
    await grant(api, "q", "p", "run")
    await api.publish("middle", tasks=[waits({"workflow": "source", "date": "last1Days"})])
    runs = {
        "name": "run",
        "type": "SUB_WORKFLOW",
        "params": {"workflow": "child", "project": "q"},
    }
    await api.publish("last", tasks=[waits({"workflow": "middle", "date": "today"}), runs])


def nodes(found: Any) -> dict[str, Any]:
    """The nodes by their ids."""
    return {one["id"]: one for one in found["nodes"]}


async def test_each_workflow_is_shown_with_the_runs_that_count_for_the_day(api: Api) -> None:
    await chain(api)
    before = await happened(api, "source", at=DAY - timedelta(hours=1))
    await happened(api, "source", at=DAY + timedelta(hours=1), state=_W.FAILED)
    running = await happened(api, "middle", at=DAY, state=_W.RUNNING, tasks={"wait": _T.RUNNING})
    found = await graph(api, workflow="middle", hops=1)
    assert (found["date"], found["is_cut"]) == ("2026-03-11", False)
    by_id = nodes(found)
    assert by_id.keys() == {"p/middle", "p/source", "p/last"}
    source = by_id["p/source"]
    assert (source["since"], source["until"]) == ("2026-03-10T00:00:00Z", "2026-03-11T00:00:00Z")
    assert ([one["id"] for one in source["runs"]], source["state"]) == ([before.id], "SUCCEEDED")
    assert (source["distance"], source["is_known"], source["hidden"]) == (1, True, 0)
    assert source["finished_at"] is not None
    middle = by_id["p/middle"]
    assert ([one["id"] for one in middle["runs"]], middle["state"]) == ([running.id], "RUNNING")
    assert (middle["finished_at"], by_id["p/last"]["state"]) == (None, None)
    assert found["edges"] == [
        {
            "source": "p/source",
            "target": "p/middle",
            "tasks": [{"task": "wait", "kind": "DEPENDENT", "date": "last1Days", "of_task": None}],
            "is_allowed": True,
            "since": "2026-03-10T00:00:00Z",
            "until": "2026-03-11T00:00:00Z",
            "run": source["runs"][0],
        },
        {
            "source": "p/middle",
            "target": "p/last",
            "tasks": [{"task": "wait", "kind": "DEPENDENT", "date": "today", "of_task": None}],
            "is_allowed": True,
            "since": "2026-03-11T00:00:00Z",
            "until": "2026-03-12T00:00:00Z",
            "run": middle["runs"][0],
        },
    ]
    assert found["critical"] == []  # the source was done before the other one began


async def test_a_project_is_shown_with_what_decides_its_end(api: Api) -> None:
    await chain(api)
    await happened(api, "source", at=DAY - timedelta(days=1))
    await happened(api, "middle", at=DAY)
    await happened(api, "last", at=DAY, state=_W.RUNNING, tasks={"run": _T.RUNNING})
    found = await graph(api)
    assert nodes(found).keys() == {"p/source", "p/middle", "p/last", "q/child"}
    [edge] = [one for one in found["edges"] if one["source"] == "q/child"]
    assert (edge["tasks"][0]["kind"], edge["is_allowed"]) == ("SUB_WORKFLOW", True)
    # It runs still, and there is no run of the child.
    assert found["critical"] == ["q/child", "p/last"]
    await happened(api, "child", "q", at=DAY)
    assert (await graph(api))["critical"][-1] == "p/last"
    assert nodes(await graph(api, hops=0)).keys() == {"p/source", "p/middle", "p/last"}
    assert nodes(await graph(api, "q")).keys() >= {"q/child", "p/last"}


async def test_edges_of_a_project_tell_of_the_runs_that_are_waited_for(api: Api) -> None:
    await chain(api)
    before = await happened(api, "source", at=DAY - timedelta(hours=1))
    after = await happened(api, "source", at=DAY + timedelta(hours=1), state=_W.FAILED)
    found = await graph(api)
    source = nodes(found)["p/source"]
    assert ([one["id"] for one in source["runs"]], source["timezone"]) == ([after.id], "UTC")
    [edge] = [one for one in found["edges"] if one["source"] == "p/source"]
    assert (edge["since"], edge["run"]["id"]) == ("2026-03-10T00:00:00Z", before.id)


async def test_what_is_hidden_has_no_runs_and_no_names_of_its_own(api: Api) -> None:
    await chain(api)
    await happened(api, "child", "q", at=DAY)
    await happened(api, "last", at=DAY)
    await api.publish("nobody", tasks=[waits({"workflow": "daily", "date": "today"})])
    now = api.services.store.clock()
    headers = {}
    async with api.services.store.unit_of_work() as uow:
        for name, roles in (("pia", {"p": "reader"}), ("quin", {"q": "reader"})):
            _, bearer_of = await token(uow, await account(uow, name, now, roles), now)
            headers[name] = bearer(bearer_of)
        await uow.commit()
    seen = nodes(await graph(api, headers=headers["pia"]))
    child = seen["q/child"]
    assert (child["is_known"], child["runs"], child["state"]) == (False, [], None)
    assert seen["p/last"]["runs"]
    # That there is none is not told apart.
    missing = seen["p/daily"]
    assert {**child, "id": "", "workflow": "", "project": ""} == {
        **missing,
        "id": "",
        "workflow": "",
        "project": "",
    }
    theirs = await graph(api, "q", headers=headers["quin"])
    assert [(one["id"], one["hidden"]) for one in theirs["nodes"]] == [("q/child", 1)]
    assert "last" not in json.dumps(theirs["nodes"])
    hidden = await api.client.get(f"{PREFIX}/projects/p/dependency-graph", headers=headers["quin"])
    problem_of(hidden, 404, "not-found")


async def test_an_edge_says_when_the_other_project_does_not_allow_it(api: Api) -> None:
    await chain(api)
    await api.client.delete(f"{PREFIX}/projects/q/grants/p", headers={"If-Match": "*"})
    edges = {one["source"]: one for one in (await graph(api))["edges"]}
    assert (edges["q/child"]["is_allowed"], edges["p/source"]["is_allowed"]) == (False, True)


async def test_days_are_those_of_the_zone_of_the_workflow(api: Api) -> None:
    await api.publish("source", timezone="Asia/Shanghai")
    await api.publish(
        "daily",
        timezone="Asia/Shanghai",
        tasks=[waits({"workflow": "source", "date": "today"})],
    )
    by_id = nodes(await graph(api, workflow="source"))
    assert {one["since"] for one in by_id.values()} == {"2026-03-10T16:00:00Z"}
    assert {one["until"] for one in by_id.values()} == {"2026-03-11T16:00:00Z"}
    assert nodes(await graph(api)).keys() == by_id.keys()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"date": "0001-01-01"}, "date"),
        ({"date": "2026-02-30"}, "date"),
        ({"hops": 21}, "hops"),
        ({"workflow": "a/b"}, "workflow"),
    ],
)
async def test_a_question_without_an_answer_is_refused(
    api: Api, query: dict[str, Any], field: str
) -> None:
    await api.publish()
    path = f"{PREFIX}/projects/p/dependency-graph"
    problem = problem_of(await api.client.get(path, params=query), 422, "invalid-request")
    assert fields_of(problem).keys() == {field}
    problem_of(await api.client.get(path, params={"workflow": "none"}), 404, "not-found")
    problem_of(await api.client.get(f"{PREFIX}/projects/none/dependency-graph"), 404, "not-found")


async def test_a_definition_that_cannot_be_read_is_left_out(api: Api) -> None:
    await chain(api)
    junk = '{"timezone":17,"tasks":[{"name":"x","type":"MAP","params":{"workflow":"source"}}]}'
    statement = text(
        "UPDATE workflow_version SET spec = :junk WHERE workflow_id ="
        " (SELECT id FROM workflow WHERE name = 'last')"
    )
    async with api.services.store.unit_of_work() as uow:
        await uow.connection.execute(statement, {"junk": junk})
        await uow.commit()
    assert nodes(await graph(api)).keys() == {"p/source", "p/middle"}


async def test_many_runs_of_a_day_are_cut(api: Api) -> None:
    await api.publish("source")
    await api.publish("daily", tasks=[waits({"workflow": "source", "date": "today"})])
    for minute in range(27):
        await happened(api, "source", at=DAY + timedelta(minutes=minute))
    source = nodes(await graph(api, workflow="source"))["p/source"]
    assert (len(source["runs"]), source["has_more"]) == (25, True)
    assert source["runs"][0]["logical_time"] == "2026-03-11T00:26:00Z"
