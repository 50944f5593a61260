"""Instances and task instances."""

from datetime import UTC, datetime
from typing import Any

from shoal.core.runs.run import Decision
from shoal.core.runs.states import WorkflowState
from shoal.core.runs.why.fingerprints import fingerprint
from shoal.sql import UnitOfWork
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.integration.api.runs.attempts import fail_and_retry, save


async def test_attempts_show_what_they_used_and_are_found_by_their_fingerprint(api: Api) -> None:
    run = await api.run(day="2013-01-15")
    line = "KeyError: 'day'"
    await fail_and_retry(
        api, run, cpu_s=0.25, max_rss_kb=12_345, error_line=line, fingerprint=fingerprint(line)
    )
    await fail_and_retry(api, await api.run(day="2013-01-16"), fingerprint=fingerprint("other"))
    path = f"{PREFIX}/task-instances"
    found = (await api.client.get(path, params={"fingerprint": fingerprint(line)})).json()["items"]
    assert [(one["workflow_instance_id"], one["attempt"]) for one in found] == [(run.id, 1)]
    used = {"cpu_s": 0.25, "max_rss_kb": 12_345, "error_line": line}
    used["fingerprint"] = fingerprint(line)
    shown = (await api.client.get(f"{path}/{found[0]['id']}")).json()
    assert used.items() <= found[0].items()
    assert used.items() <= shown.items()
    whole = (await api.client.get(f"{PREFIX}/instances/{run.id}?attempts=all")).json()["tasks"]
    assert used.items() <= whole[0].items()
    assert dict.fromkeys(used).items() <= whole[1].items()  # all of them null
    counts = (
        await api.client.get(
            f"{PREFIX}/task-instance-counts", params={"fingerprint": fingerprint(line)}
        )
    ).json()
    assert counts["total"]["count"] == 1


async def test_a_fingerprint_has_a_form(api: Api) -> None:
    for wrong in ("KeyError", "0123456789ABCDEF", "0123456789abcde", f"{fingerprint('x')}%0a"):
        answer = await api.client.get(f"{PREFIX}/task-instances?fingerprint={wrong}")
        fields = fields_of(problem_of(answer, 422, "invalid-request"))
        assert fields.keys() == {"fingerprint"}


async def test_an_instance_with_its_tasks_in_order(api: Api) -> None:
    run = await api.run(day="2013-01-15")
    retry_id = await fail_and_retry(api, run)
    shown = (await api.client.get(f"{PREFIX}/instances/{run.id}")).json()
    assert shown["state"] == "RUNNING"
    assert (shown["project"], shown["workflow"], shown["version"]) == ("p", "daily", 1)
    assert shown["parameters"] == {"day": "2013-01-15"}
    assert shown["priority"] == "MEDIUM"
    assert shown["task_counts"] == {"WAITING": 2}
    assert (shown["run_number"], shown["rerun_of"], shown["finished_at"]) == (1, None, None)
    assert shown["created_at"].endswith("Z")
    assert [(t["task"], t["attempt"], t["depends_on"]) for t in shown["tasks"]] == [
        ("fetch", 2, []),
        ("report", 1, ["fetch"]),
    ]
    assert shown["tasks"][0]["id"] == retry_id
    every = (await api.client.get(f"{PREFIX}/instances/{run.id}?attempts=all")).json()
    assert [(t["task"], t["attempt"], t["state"]) for t in every["tasks"]] == [
        ("fetch", 1, "FAILED"),
        ("fetch", 2, "WAITING"),
        ("report", 1, "WAITING"),
    ]
    bad = await api.client.get(f"{PREFIX}/instances/{run.id}?attempts=some")
    assert fields_of(problem_of(bad, 422, "invalid-request")).keys() == {"attempts"}


async def test_a_task_instance(api: Api) -> None:
    run = await api.run()
    await fail_and_retry(api, run)
    every = (await api.client.get(f"{PREFIX}/instances/{run.id}?attempts=all")).json()
    failed = every["tasks"][0]
    shown = (await api.client.get(f"{PREFIX}/task-instances/{failed['id']}")).json()
    assert {**shown, "depends_on": []} == {**failed, "outputs": {}}
    assert shown["workflow_instance_id"] == run.id
    assert (shown["exit_code"], shown["reason"], shown["worker"]) == (3, "exit status 3", "w1")


async def test_lists_of_instances_are_filtered_and_come_in_pages(api: Api) -> None:
    first, second = await api.run(), await api.run()
    third = await api.run("daily", "q")
    await fail_and_retry(api, second)

    async def ids(query: str) -> Any:
        answer = await api.client.get(f"{PREFIX}/instances?{query}")
        assert answer.status_code == 200, answer.text
        return [item["id"] for item in answer.json()["items"]]

    assert await ids("") == [third.id, second.id, first.id]
    assert await ids("project=p") == [second.id, first.id]
    assert await ids("project=q&workflow=daily") == [third.id]
    assert await ids("workflow=none") == []
    assert await ids("state=RUNNING") == [second.id]
    assert await ids("state=RUNNING&state=QUEUED") == [third.id, second.id, first.id]
    assert await ids("since=2100-01-01T00:00:00Z") == []
    assert await ids("until=2100-01-01T00:00:00%2B02:00&limit=1") == [third.id]
    page = (await api.client.get(f"{PREFIX}/instances?limit=2")).json()
    rest = (await api.client.get(f"{PREFIX}/instances?cursor={page['next']}")).json()
    assert [item["id"] for item in page["items"] + rest["items"]] == [
        third.id,
        second.id,
        first.id,
    ]
    assert rest["next"] is None
    assert rest["items"][0]["task_counts"] == {"WAITING": 2}


async def test_lists_of_task_instances(api: Api) -> None:
    run = await api.run()
    await api.run("daily", "q")
    await fail_and_retry(api, run)

    async def tasks(query: str) -> Any:
        answer = await api.client.get(f"{PREFIX}/task-instances?{query}")
        assert answer.status_code == 200, answer.text
        return [(t["project"], t["task"], t["attempt"]) for t in answer.json()["items"]]

    assert await tasks("state=FAILED") == [("p", "fetch", 1)]
    assert await tasks("worker=w1") == [("p", "fetch", 1)]
    assert await tasks("project=q&workflow=daily") == [("q", "report", 1), ("q", "fetch", 1)]
    page = (await api.client.get(f"{PREFIX}/task-instances?limit=3")).json()
    rest = (await api.client.get(f"{PREFIX}/task-instances?cursor={page['next']}")).json()
    ids = [item["id"] for item in page["items"] + rest["items"]]
    assert ids == sorted(set(ids), reverse=True)
    assert len(ids) == 5


async def test_a_cursor_belongs_to_its_list(api: Api) -> None:
    await api.run()
    page = (await api.client.get(f"{PREFIX}/task-instances?limit=1")).json()
    answer = await api.client.get(f"{PREFIX}/instances?cursor={page['next']}")
    assert fields_of(problem_of(answer, 422, "invalid-request")).keys() == {"cursor"}


async def test_an_instance_of_a_deleted_workflow_stays_readable(api: Api) -> None:
    run = await api.run()
    await save(
        api,
        run,
        Decision(
            state=WorkflowState.STOPPED,
            previous=WorkflowState.QUEUED,
            finished_at=datetime.now(UTC),
        ),
    )

    async def delete(uow: UnitOfWork) -> None:
        await uow.lifecycle.delete("p", "daily")

    await api.store(delete)
    shown = await api.client.get(f"{PREFIX}/instances/{run.id}")
    assert [task["task"] for task in shown.json()["tasks"]] == ["fetch", "report"]
