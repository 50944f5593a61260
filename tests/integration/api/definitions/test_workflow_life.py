"""What becomes of workflows: compared, restored, copied, renamed, archived, deleted; labels."""

from datetime import datetime
from typing import Any

from tests.integration.api.conftest import PREFIX, Api, definition, fields_of, problem_of

WORKFLOWS = f"{PREFIX}/projects/p/workflows"
WORKFLOW = f"{WORKFLOWS}/daily"
SUB = {"name": "s", "type": "SUB_WORKFLOW", "params": {"workflow": "daily"}}
WAIT = {
    "name": "w",
    "type": "DEPENDENT",
    "params": {"when": {"all": [{"workflow": "daily", "project": "p", "date": "today"}]}},
}
CRON = {"cron": "0 0 6 * * ?"}


async def versions(api: Api, path: str = WORKFLOW) -> list[int]:
    return [one["version"] for one in (await api.client.get(f"{path}/versions")).json()["items"]]


async def test_any_two_versions_are_compared(api: Api) -> None:
    await api.publish()
    await api.publish(description="new", schedules=[CRON], parameters={"day": "1"})
    tasks = definition()["tasks"][:1]
    await api.publish(description="new", tasks=tasks)

    async def diff(version: int, query: str = "") -> Any:
        answer = await api.client.get(f"{WORKFLOW}/versions/{version}/diff{query}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    found = await diff(2)
    assert (found["base"], found["version"]) == (1, 2)
    assert [one["path"] for one in found["fields"]] == ["description"]
    assert [one["path"] for one in found["parameters"]] == ["parameters.day"]
    assert len(found["schedules"]) == 1
    assert (found["tasks_added"], found["tasks_removed"], found["edges_removed"]) == ([], [], [])
    back = await diff(1, "?base=3")
    assert (back["tasks_added"], back["tasks_removed"]) == (["report"], [])
    assert back["edges_added"] == [{"source": "fetch", "target": "report"}]
    assert "-description: new" in back["text"]
    assert (await diff(3, "?base=0"))["tasks_added"] == ["fetch"]
    assert (await diff(2, "?base=2"))["text"] == ""
    problem_of(await api.client.get(f"{WORKFLOW}/versions/4/diff"), 404, "not-found")
    problem_of(await api.client.get(f"{WORKFLOW}/versions/2/diff?base=9"), 404, "not-found")


async def test_restoring_makes_a_new_version_of_an_old_one(api: Api) -> None:
    await api.client.put(f"{PREFIX}/projects/p", json={"description": ""})
    calendar = f"{PREFIX}/projects/p/calendars/days"
    await api.client.put(calendar, json={"days": ["2026-01-01"]})
    await api.publish(schedules=[{**CRON, "calendar": "days"}])
    await api.publish(description="second")
    tag = (await api.client.get(WORKFLOW)).headers["ETag"]
    tried = await api.client.post(f"{WORKFLOW}/versions/1/restore?dry_run=true")
    assert (tried.json()["version"], await versions(api)) == (3, [2, 1])
    done = await api.client.post(f"{WORKFLOW}/versions/1/restore", headers={"If-Match": tag})
    assert (done.status_code, done.json()["version"]) == (201, 3)
    newest = (await api.client.get(f"{WORKFLOW}/versions/3")).json()
    first = (await api.client.get(f"{WORKFLOW}/versions/1")).json()
    assert newest["definition"] == first["definition"]
    assert (await api.client.get(f"{WORKFLOW}/schedules")).json()["items"][0]["calendar"] == "days"
    stale = await api.client.post(f"{WORKFLOW}/versions/2/restore", headers={"If-Match": tag})
    assert stale.status_code == 412
    await api.publish(description="second")
    await api.client.delete(calendar)
    gone = await api.client.post(f"{WORKFLOW}/versions/1/restore")
    assert "schedules[0].calendar" in fields_of(problem_of(gone, 422, "invalid-definition"))
    assert await versions(api) == [4, 3, 2, 1]


async def test_a_copy_says_the_same_of_itself_and_changes_nothing_that_is_there(api: Api) -> None:
    await api.publish(tasks=[{**WAIT, "name": "own"}, {**SUB, "name": "other"}][:1])
    await api.client.put(f"{PREFIX}/projects/q", json={"description": ""})
    body = {"project": "p", "workflow": "daily"}
    made = await api.client.post(f"{PREFIX}/projects/q/workflows/copy/copy", json=body)
    assert (made.status_code, made.json()["version"]) == (201, 1), made.text
    found = (await api.client.get(f"{PREFIX}/projects/q/workflows/copy")).json()["definition"]
    [item] = found["tasks"][0]["params"]["when"]["all"]
    assert (item["workflow"], item["project"]) == ("copy", "q")  # it waits for itself
    again = await api.client.post(f"{PREFIX}/projects/q/workflows/copy/copy", json=body)
    problem_of(again, 409, "name-taken")
    missing = {**body, "version": 7}
    problem_of(await api.client.post(f"{WORKFLOWS}/new/copy", json=missing), 404, "not-found")
    await api.client.put(f"{PREFIX}/projects/p/concurrency-groups/gpu", json={"slots": 1})
    tasks = [{**definition()["tasks"][0], "concurrency_group": "gpu"}]
    await api.publish("grouped", tasks=tasks)
    body = {"project": "p", "workflow": "grouped"}
    refused = await api.client.post(f"{PREFIX}/projects/q/workflows/grouped/copy", json=body)
    problem_of(refused, 422, "invalid-definition")


async def test_renaming_keeps_history_schedules_drafts_and_runs(api: Api) -> None:
    run = await api.run()
    await api.publish(schedules=[CRON], tasks=[*definition()["tasks"], WAIT])
    [schedule] = (await api.client.get(f"{WORKFLOW}/schedules")).json()["items"]
    await api.client.put(f"{WORKFLOW}/draft", json={"text": "# mine"})
    done = await api.client.post(f"{WORKFLOW}/rename", json={"name": "nightly"})
    assert (done.status_code, done.json()["version"]) == (200, 3), done.text
    problem_of(await api.client.get(WORKFLOW), 404, "not-found")
    path = f"{WORKFLOWS}/nightly"
    assert await versions(api, path) == [3, 2, 1]
    newest = await api.client.get(path)
    assert newest.headers["ETag"] == done.headers["ETag"]
    [item] = newest.json()["definition"]["tasks"][2]["params"]["when"]["all"]
    assert item["workflow"] == "nightly"
    [kept] = (await api.client.get(f"{path}/schedules")).json()["items"]
    assert (kept["id"], kept["next_fire_at"]) == (schedule["id"], schedule["next_fire_at"])
    assert (await api.client.get(f"{path}/draft")).json()["text"] == "# mine"
    assert (await api.client.get(f"{PREFIX}/instances/{run.id}")).json()["workflow"] == "nightly"
    diff = (await api.client.get(f"{path}/versions/3/diff")).json()
    assert [one["path"] for one in diff["fields"]] == ["name"]
    old = await api.client.post(f"{path}/versions/1/restore")
    assert old.json()["version"] == 4
    assert (await api.client.get(path)).json()["definition"]["name"] == "nightly"


async def test_renaming_leaves_no_name_dangling_unasked(api: Api) -> None:
    await api.publish()
    await api.publish("above", tasks=[SUB])
    await api.publish("behind", tasks=[WAIT])
    await api.publish("taken")
    body = {"name": "nightly"}
    seen = (await api.client.post(f"{WORKFLOW}/rename?dry_run=true", json=body)).json()
    assert [(one["workflow"], one["kind"]) for one in seen["downstream"]] == [
        ("above", "SUB_WORKFLOW"),
        ("behind", "DEPENDENT"),
    ]
    refused = problem_of(
        await api.client.post(f"{WORKFLOW}/rename", json=body), 409, "workflow-in-use"
    )
    assert "p/above, p/behind" in refused["detail"]
    assert await versions(api) == [1]
    problem_of(
        await api.client.post(
            f"{WORKFLOW}/rename", json={"name": "taken", "despite": ["references"]}
        ),
        409,
        "name-taken",
    )
    done = await api.client.post(f"{WORKFLOW}/rename", json={**body, "despite": ["references"]})
    assert done.status_code == 200
    found = (await api.client.get(f"{WORKFLOWS}/above/dependencies")).json()
    assert found["upstream"] == [
        {"project": "p", "workflow": "daily", "kind": "SUB_WORKFLOW", "task": "s"}
    ]
    assert found["downstream"] == []


async def test_an_archived_workflow_starts_nothing_and_keeps_its_history(api: Api) -> None:
    run = await api.run()
    await api.publish(schedules=[CRON, {**CRON, "enabled": False}])
    schedules = f"{WORKFLOW}/schedules"
    tag = (await api.client.get(WORKFLOW)).headers["ETag"]
    done = await api.client.post(f"{WORKFLOW}/archive", headers={"If-Match": tag})
    assert done.json()["archived_at"] is not None
    assert done.headers["ETag"] != tag
    stale = await api.client.post(f"{WORKFLOW}/unarchive", headers={"If-Match": tag})
    assert stale.status_code == 412
    first = (await api.client.get(schedules)).json()["items"][0]
    assert (first["enabled"], first["next_fire_at"], first["next_fire_times"]) == (True, None, [])
    start = {"type": "START", "project": "p", "workflow": "daily"}
    problem_of(await api.client.post(f"{PREFIX}/commands", json=start), 409, "archived")
    dates = {"project": "p", "workflow": "daily", "from": "2026-02-01", "to": "2026-02-02"}
    backfill = await api.client.post(f"{PREFIX}/backfills?dry_run=true", json=dates)
    assert backfill.status_code == 422
    changed = await api.client.put(WORKFLOW, json=definition(description="x"))
    problem_of(changed, 409, "archived")
    rename = await api.client.post(f"{WORKFLOW}/rename", json={"name": "n"})
    problem_of(rename, 409, "archived")
    assert (await api.client.get(f"{PREFIX}/instances/{run.id}")).status_code == 200

    async def listed(query: str) -> list[str]:
        answer = await api.client.get(f"{PREFIX}/workflows{query}")
        return [one["name"] for one in answer.json()["items"]]

    await api.publish("used")
    assert await listed("") == ["used"]
    assert await listed("?archived=true") == ["daily"]
    assert await listed("?archived=any") == ["daily", "used"]

    back = await api.client.post(f"{WORKFLOW}/unarchive")
    assert back.json()["archived_at"] is None
    on, off = (await api.client.get(schedules)).json()["items"]
    assert datetime.fromisoformat(on["next_fire_at"]) > api.services.store.clock()
    assert off["next_fire_at"] is None
    assert (await api.client.post(f"{PREFIX}/commands", json=start)).status_code == 202


async def test_deleting_shows_what_hangs_on_it_and_asks(api: Api) -> None:
    run = await api.run()
    await api.publish("above", tasks=[SUB])
    await api.client.put(f"{WORKFLOW}/draft", json={"text": ""})
    hangs = (await api.client.get(f"{WORKFLOW}/hanging")).json()
    assert (hangs["open_runs"], hangs["open_run_ids"], hangs["drafts"]) == (1, [run.id], 1)
    assert [one["workflow"] for one in hangs["downstream"]] == ["above"]
    problem_of(await api.client.delete(WORKFLOW), 409, "open-instances")
    problem_of(await api.client.delete(f"{WORKFLOW}?despite=runs"), 409, "workflow-in-use")
    problem_of(await api.client.delete(f"{WORKFLOW}?despite=references"), 409, "open-instances")
    problem_of(await api.client.delete(f"{WORKFLOW}?despite=all"), 422, "invalid-request")
    both = f"{WORKFLOW}?despite=runs&despite=references"
    assert (await api.client.delete(both)).status_code == 204
    assert (await api.client.get(f"{PREFIX}/instances/{run.id}")).status_code == 200
    problem_of(await api.client.get(WORKFLOW), 404, "not-found")
    taken = await api.client.post(f"{WORKFLOWS}/above/rename", json={"name": "daily"})
    assert "deleted" in problem_of(taken, 409, "name-taken")["detail"]


LABELS: list[tuple[str, list[str]]] = [
    ("label=team", ["a", "b"]),
    ("label=team=x", ["a"]),
    ("label=team=X", []),
    ("label=team=x&label=tier=1", ["a"]),
    ("label=team=y&label=tier=1", []),
    ("label=te", []),
    ('label=note="team":"y"', ["c"]),
    ("label=note", ["c"]),
    ("sort=-updated_at", ["c", "b", "a"]),
]


async def test_lists_are_filtered_by_labels(api: Api) -> None:
    await api.publish("a", labels={"team": "x", "tier": 1})
    await api.publish("b", labels={"team": "y"})
    await api.publish("c", labels={"note": '"team":"y"'})
    for query, names in LABELS:
        answer = await api.client.get(f"{PREFIX}/workflows?{query}")
        assert [one["name"] for one in answer.json()["items"]] == names, query


async def test_lists_show_owners_and_are_filtered_by_them(api: Api) -> None:
    await api.publish("a", owner="ada@example.org")
    await api.publish("b", owner="Ada@example.org")
    await api.publish("c")
    for owner, names in (("ada@example.org", ["a"]), ("", ["c"]), ("ada", [])):
        for sort in ("name", "-updated_at", "-last_run"):
            query = {"owner": owner, "sort": sort}
            answer = await api.client.get(f"{PREFIX}/workflows", params=query)
            assert [one["name"] for one in answer.json()["items"]] == names, query
    shown = (await api.client.get(f"{PREFIX}/projects/p/workflows/a")).json()
    assert (shown["owner"], shown["definition"]["owner"]) == ("ada@example.org",) * 2
    await api.publish("a", description="nobody's")
    shown = (await api.client.get(f"{PREFIX}/projects/p/workflows/a")).json()
    assert (shown["owner"], "owner" in shown["definition"]) == ("", False)


async def test_lists_by_the_latest_change_continue(api: Api) -> None:
    for name in ("a", "b", "c"):
        await api.publish(name)
    await api.publish("a", description="again")
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await api.client.get(f"{PREFIX}/workflows?sort=-updated_at&limit=1{cursor}")).json()
        seen += [one["name"] for one in page["items"]]
        cursor = None if page["next"] is None else f"&cursor={page['next']}"
    assert seen == ["a", "c", "b"]
    wrong = (await api.client.get(f"{PREFIX}/workflows?limit=1")).json()["next"]
    answer = await api.client.get(f"{PREFIX}/workflows?sort=-updated_at&cursor={wrong}")
    problem_of(answer, 422, "invalid-request")
    problem_of(await api.client.get(f"{PREFIX}/workflows?label=A"), 422, "invalid-request")


async def test_no_way_to_publish_gets_past_the_grant_of_another_project(api: Api) -> None:
    for project in ("p", "q", "theirs"):
        await api.client.put(f"{PREFIX}/projects/{project}", json={"description": ""})
    grant = f"{PREFIX}/projects/theirs/grants/p"
    await api.client.put(grant, json={"what": "run"})
    tasks = [{**SUB, "params": {"workflow": "w", "project": "theirs"}}]
    await api.publish(tasks=tasks)
    await api.publish()
    copy = {"project": "p", "workflow": "daily", "version": 1}
    copied = await api.client.post(f"{PREFIX}/projects/q/workflows/new/copy", json=copy)
    problem_of(copied, 422, "invalid-definition")  # the grant is for p alone
    await api.client.delete(grant)
    restored = await api.client.post(f"{WORKFLOW}/versions/1/restore")
    problem_of(restored, 422, "invalid-definition")
    text = "tasks: [{name: s, type: SUB_WORKFLOW, params: {workflow: w, project: theirs}}]"
    await api.client.put(f"{WORKFLOW}/draft", json={"text": text})
    drafted = await api.client.post(f"{WORKFLOW}/draft/publish")
    problem_of(drafted, 422, "invalid-definition")
    assert await versions(api) == [2, 1]
