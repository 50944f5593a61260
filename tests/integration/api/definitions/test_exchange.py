"""Whole projects out and in: everything or nothing, one result for each document."""

from typing import Any

from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import create_key
from tests.integration.api.conftest import PREFIX, Api, definition, problem_of

PROJECT = f"{PREFIX}/projects/p"
OTHER = f"{PREFIX}/projects/q"


async def made(api: Api) -> str:
    """Make a project with all that can be exported; return its export."""
    for path, body in (
        (PROJECT, {"description": ""}),
        (OTHER, {"description": ""}),
        (f"{PREFIX}/environments/lab", {"setup": "true"}),
        (f"{PROJECT}/calendars/days", {"days": ["2026-12-25"], "description": "off"}),
        (f"{PROJECT}/concurrency-groups/gpu", {"slots": 2}),
        (f"{PROJECT}/calendars/unused", {"days": ["2026-12-26"]}),
    ):
        assert (await api.client.put(path, json=body)).status_code in (200, 201)
    tasks: list[dict[str, Any]] = definition()["tasks"]
    tasks[0] |= {"concurrency_group": "gpu", "environment": "lab", "timeout": 5}
    tasks[0]["params"]["script"] = "line one\necho ${x} 'é' \t\n"
    tasks.append({"name": "sub", "type": "SUB_WORKFLOW", "params": {"workflow": "small"}})
    await api.publish(
        "large",
        tasks=tasks,
        schedules=[{"cron": "0 0 6 * * ?", "calendar": "days"}],
        labels={"team": "x"},
        parameters={"n": "007"},
    )
    await api.publish("small")
    await api.publish("old")
    await api.client.post(f"{PROJECT}/workflows/old/archive")
    answer = await api.client.get(f"{PROJECT}/export")
    assert answer.json()["environments"] == ["lab"]
    return str(answer.json()["text"])


async def test_what_was_exported_is_imported_elsewhere_as_it_was(api: Api) -> None:
    text = await made(api)
    assert "unused" not in text
    tried = await api.client.post(f"{OTHER}/import?dry_run=true", json={"text": text})
    done = await api.client.post(f"{OTHER}/import", json={"text": text})
    items = [
        ("calendar", "days", "created"),
        ("concurrency-group", "gpu", "created"),
        ("workflow", "large", "created"),
        ("workflow", "small", "created"),
    ]
    for answer in (tried, done):
        assert answer.status_code == 200, answer.text
        found = answer.json()["items"]
        assert [(one["kind"], one["name"], one["result"]) for one in found] == items
    assert (tried.json()["stored"], done.json()["stored"]) == (False, True)
    for name in ("large", "small"):
        here, there = [
            (await api.client.get(f"{home}/workflows/{name}")).json()["definition"]
            for home in (PROJECT, OTHER)
        ]
        assert there == {**here, "project": "q"}
    again = await api.client.post(f"{OTHER}/import", json={"text": text})
    assert {one["result"] for one in again.json()["items"]} == {"unchanged"}
    one = (await api.client.get(f"{PROJECT}/export?name=small")).json()
    assert "large" not in one["text"]
    assert one["environments"] == []
    problem_of(await api.client.get(f"{PROJECT}/export?name=none"), 404, "not-found")


async def test_an_import_is_all_or_nothing_with_a_reason_for_each(api: Api) -> None:
    await made(api)
    text = (
        "kind: calendar\nname: days\ndays: [2027-01-01]\n"
        "---\nname: small\ntasks:\n  - {name: a, type: SHELL, params: {script: x}}\n"
        "---\nname: wrong\ntasks:\n  - {name: a, type: SHEL}\n"
        "---\nname: far\ntasks:\n"
        "  - {name: a, type: SUB_WORKFLOW, params: {workflow: w, project: theirs}}\n"
        "---\nkind: concurrency-group\nname: g\nslots: -1\n"
        "---\nkind: secret\nname: s\nvalue: x\n"
        "---\nname: old\ntasks:\n  - {name: a, type: SHELL, params: {script: x}}\n"
        "---\nproject: q\nname: else\ntasks:\n  - {name: a, type: SHELL, params: {script: x}}\n"
        "---\nname: small\ntasks: []\n"
    )
    tried = await api.client.post(f"{PROJECT}/import?dry_run=true", json={"text": text})
    assert tried.status_code == 200, tried.text
    found = [
        (one["name"], one["result"], *((p["field"], p["line"]) for p in one["problems"]))
        for one in tried.json()["items"]
    ]
    assert found == [
        ("days", "changed"),
        ("small", "changed"),
        ("wrong", "refused", ("tasks[0].type", 11)),
        ("far", "refused", ("tasks[0].params.project", 15)),
        ("g", "refused", ("slots", 19)),
        ("", "refused", ("kind", 21)),
        ("old", "refused", ("name", 25)),
        ("else", "refused", ("project", 29)),
        ("small", "refused", ("name", 34)),
    ]
    refused = await api.client.post(f"{PROJECT}/import", json={"text": text})
    errors = problem_of(refused, 422, "invalid-definition")["errors"]
    assert {error["field"] for error in errors} >= {"items[2].tasks[0].type", "items[4].slots"}
    calendar = (await api.client.get(f"{PROJECT}/calendars/days")).json()
    assert calendar["days"] == ["2026-12-25"]
    small = (await api.client.get(f"{PROJECT}/workflows/small")).json()
    assert small["version"] == 1
    for text, line in (("- a", None), ("a: [", 1), ("", 1)):
        answer = await api.client.post(f"{PROJECT}/import", json={"text": text})
        problem_of(answer, 422, "invalid-definition")
        if line:
            assert answer.json()["errors"][0]["line"] == line


async def test_no_secret_leaves_with_an_export(api: Api, cluster: ClusterSettings) -> None:
    await made(api)
    create_key(cluster.secrets_key_file)
    source = {"kind": "mariadb", "host": "db", "port": 1, "user": "u", "password": "CANARY"}
    for path, body in (("secrets/key", {"value": "CANARY"}), ("data-sources/wh", source)):
        answer = await api.client.put(f"{PROJECT}/{path}", json=body)
        assert answer.status_code < 300, answer.text
    assert "CANARY" not in (await api.client.get(f"{PROJECT}/export")).text
