"""What a start would run, what an attempt gets, how two runs differ, when their tasks worked."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.core.runs.run import Decision
from shoal.core.runs.states import TaskState, WorkflowState
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.integration.api.runs.attempts import save

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
TASKS = [
    {
        "name": "load",
        "type": "HTTP",
        "params": {"url": "http://x/${day}?key=${secret.KEY}", "method": "GET"},
        "parameters": {"day": "$[yyyy-MM-dd-1]-${region}"},
    },
    {
        "name": "report",
        "type": "SHELL",
        "params": {"script": "echo $day ${system.task.definition.name}"},
        "depends_on": ["load"],
    },
    {
        "name": "off",
        "type": "SHELL",
        "params": {"script": "true"},
        "depends_on": ["load"],
        "enabled": False,
    },
]


async def publish(api: Api) -> None:
    parameters = {"region": "eu"}
    await api.publish(tasks=TASKS, parameters=parameters, labels={"team": "a", "env": "x"})


async def preview(api: Api, **body: Any) -> Any:
    answer = await api.client.post(
        f"{PREFIX}/start-previews", json={"project": "p", "workflow": "daily", **body}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_preview_of_a_start(api: Api) -> None:
    await publish(api)
    shown = await preview(
        api,
        parameters={"region": "us"},
        logical_time="2026-03-02T06:00:00Z",
        priority="HIGH",
        labels={"env": "prod"},
    )
    assert shown["parameters"] == {"region": "us"}
    assert (shown["version"], shown["priority"], shown["timezone"]) == (1, "HIGH", "UTC")
    assert shown["labels"] == {"env": "prod", "team": "a"}
    load, report, off = shown["tasks"]
    assert load["rendered"]["params"]["url"] == "http://x/2026-03-01-us?key=******"
    assert load["rendered"]["parameters"] == {"day": "2026-03-01-us", "region": "us"}
    assert report["rendered"]["params"]["script"] == "echo $day report"
    assert report["depends_on"] == ["load"]
    assert (off["runs"], off["rendered"]) == (False, None)
    chosen = await preview(api, tasks=["report"], mode="only", render=["load"])
    assert [one["runs"] for one in chosen["tasks"]] == [False, True, False]
    assert [one["rendered"] is not None for one in chosen["tasks"]] == [True, False, False]
    async with api.services.store.unit_of_work(read_only=True) as uow:
        assert await uow.commands.backlog() == {}
        assert await uow.instances.list() == []


async def test_preview_says_what_a_start_would_be_refused_for(api: Api) -> None:
    await publish(api)
    for body, field in (
        ({"parameters": {"nothing": "1"}}, "parameters.nothing"),
        ({"tasks": ["lod"]}, "tasks"),
        ({"render": ["lod"]}, "tasks"),
        ({"mode": "only"}, "mode"),
    ):
        whole = {"project": "p", "workflow": "daily", **body}
        answer = await api.client.post(f"{PREFIX}/start-previews", json=whole)
        assert field in fields_of(problem_of(answer, 422, "invalid-request"))
    unknown = {"project": "p", "workflow": "daily", "version": 9}
    answer = await api.client.post(f"{PREFIX}/start-previews", json=unknown)
    problem_of(answer, 404, "not-found")


async def test_an_attempt_is_shown_as_it_is_rendered(api: Api) -> None:
    await publish(api)
    run = await api.started("daily", "p", region="us")
    task = run.attempts["load"].id
    shown = (await api.client.get(f"{PREFIX}/task-instances/{task}/rendered")).json()
    day = (run.logical_time - timedelta(days=1)).date().isoformat()
    assert shown["params"]["url"] == f"http://x/{day}-us?key=******"
    assert shown["problem"] is None


async def _ended(api: Api, seconds: tuple[int, int], state: TaskState) -> int:
    """A run whose first task took so many seconds, and then the second one."""
    run = await api.run()
    first_end = START + timedelta(seconds=seconds[0])
    end = first_end + timedelta(seconds=seconds[1])
    fetch = replace(
        run.attempts["fetch"],
        state=TaskState.SUCCEEDED,
        queued_at=START,
        started_at=START,
        finished_at=first_end,
    )
    report = replace(
        run.attempts["report"], state=state, started_at=first_end, finished_at=end, worker="w1"
    )
    ended = Decision(
        attempts={("fetch", 1): fetch, ("report", 1): report},
        state=WorkflowState.SUCCEEDED,
        previous=WorkflowState.QUEUED,
        started_at=START,
        finished_at=end,
    )
    await save(api, run, ended)
    return run.id


async def test_two_runs_are_compared(api: Api) -> None:
    one = await _ended(api, (10, 5), TaskState.SUCCEEDED)
    other = await _ended(api, (12, 3), TaskState.FAILED)
    change = {"labels": {"env": "prod"}}
    await api.client.patch(f"{PREFIX}/instances/{other}/labels", json=change)
    shown = (await api.client.get(f"{PREFIX}/instances/{one}/comparison/{other}")).json()
    assert shown["labels"] == [{"name": "env", "one": None, "other": "prod"}]
    assert shown["parameters"] == []
    assert (shown["one"]["seconds"], shown["other"]["seconds"]) == (15.0, 15.0)
    fetch, report = shown["tasks"]
    assert (fetch["differs"], fetch["slower_s"]) == (False, 2.0)
    assert (report["differs"], report["slower_s"]) == (True, -2.0)
    assert report["other"] == {"attempt": 1, "state": "FAILED", "seconds": 3.0, "worker": "w1"}


async def test_the_path_that_the_end_has_waited_for(api: Api) -> None:
    one = await _ended(api, (10, 5), TaskState.SUCCEEDED)
    shown = (await api.client.get(f"{PREFIX}/instances/{one}/timeline")).json()
    assert shown["critical_path"] == ["fetch", "report"]
    assert shown["critical_s"] == 15.0
    assert [bar["is_critical"] for bar in shown["bars"]] == [True, True]
    idle = await api.run("idle")
    shown = (await api.client.get(f"{PREFIX}/instances/{idle.id}/timeline")).json()
    assert (shown["critical_path"], shown["critical_s"]) == ([], 0.0)


TEXT = """\
# not published yet
parameters: {day: "$[yyyy-MM-dd]"}
tasks:
  - name: load
    type: HTTP
    params: {method: GET, url: "http://x/${day}/${of_project}?key=${secret.KEY}"}
"""


async def test_preview_of_a_text_that_is_not_published(api: Api) -> None:
    await api.make("p")
    parameter = await api.client.put(
        f"{PREFIX}/projects/p/parameters/of_project", json={"value": "x"}
    )
    assert parameter.status_code == 201, parameter.text
    shown = await preview(api, workflow="new", text=TEXT, logical_time="2026-03-02T06:00:00Z")
    assert shown["version"] == 1
    url = shown["tasks"][0]["rendered"]["params"]["url"]
    assert url == "http://x/2026-03-02/x?key=******"
    await publish(api)
    again = await preview(api, text=TEXT, parameters={"day": "$[yyyy-MM-dd-1]"}, render=["load"])
    assert (again["version"], [one["task"] for one in again["tasks"]]) == (2, ["load"])
    assert (await preview(api))["version"] == 1
    assert (await api.client.get(f"{PREFIX}/projects/p/workflows/new")).status_code == 404


async def test_preview_of_a_text_says_what_is_wrong_with_it(api: Api) -> None:
    await publish(api)
    url = f"{PREFIX}/start-previews"
    body = {"project": "p", "workflow": "daily"}
    wrong = await api.client.post(url, json={**body, "text": "tasks:\n  - {name: a, type: SHEL}\n"})
    problem = problem_of(wrong, 422, "invalid-definition")
    assert [one["line"] for one in problem["errors"]] == [2]
    both = await api.client.post(url, json={**body, "text": TEXT, "version": 1})
    assert "do not go together" in problem_of(both, 422, "invalid-request")["detail"]
    unknown = await api.client.post(url, json={**body, "text": TEXT, "parameters": {"no": "1"}})
    assert "parameters.no" in fields_of(problem_of(unknown, 422, "invalid-request"))


async def test_texts_are_previewed_by_those_who_may_publish_them(api: Api) -> None:
    await publish(api)
    now = api.services.store.clock()
    async with api.services.store.unit_of_work() as uow:
        _, reader = await token(uow, await account(uow, "rea", now, {"p": "reader"}), now)
        _, writer = await token(uow, await account(uow, "wri", now, {"p": "writer"}), now)
        await uow.commit()
    body = {"project": "p", "workflow": "daily"}
    for who, text, status in (
        (reader, None, 200),
        (reader, TEXT, 403),
        (writer, TEXT, 200),
    ):
        answer = await api.client.post(
            f"{PREFIX}/start-previews",
            json={**body, **({} if text is None else {"text": text})},
            headers=bearer(who),
        )
        assert answer.status_code == status, answer.text
