"""A reader of one project sees no row, count, name or total of another."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from shoal.core.access.principals import EVERYTHING
from shoal.sql import UnitOfWork
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, Api, problem_of
from tests.support.insight import rollups
from tests.support.insight.rollups import DAY, cost, failure, task_day, workflow_day

VIEWS = (
    "summary",
    "summary?workflow=daily",
    "workflows",
    "workflows?limit=1",
    "workflows?sort=cost",
    "tasks?project=own&workflow=daily",
    "failures",
    "costs",
    "costs?by=project",
    "costs?by=label",
    "costs?by=task&project=own",
    "schedule-minutes",
    "rollups",
    *(f"rollup-rows?job={job}&day={DAY}" for job in (*rollups.EVERY, *rollups.OF_CLUSTER)),
)
#: What asks for the other project by its name.
ASKING = (
    "summary?project=secretive",
    "workflows?project=secretive",
    "tasks?project=secretive&workflow=daily",
    "failures?project=secretive",
    "costs?project=secretive",
    "costs?by=task&project=secretive",
    f"rollup-rows?job=costs&day={DAY}&project=secretive",
)


async def reader(api: Api, project: str) -> Mapping[str, str]:
    """Return the headers of a reader of one project."""
    made: list[str] = []

    async def store(uow: UnitOfWork) -> None:
        now = datetime.now(UTC)
        who = await account(uow, "ada", now, {project: "reader"})
        made.append((await token(uow, who, now, EVERYTHING))[1])

    await api.store(store)
    return bearer(made[0])


async def shown(api: Api, headers: Mapping[str, str], *views: str) -> dict[str, Any]:
    """Return the answers of some views."""
    found = {}
    for view in views:
        answer = await api.client.get(f"{PREFIX}/insight/{view}", headers=headers)
        assert answer.status_code == 200, answer.text
        found[view] = answer.json()
    return found


async def test_answers_are_the_same_whatever_another_project_has_done(api: Api) -> None:
    database = api.services.store.database
    for name in ("own", "secretive", "void"):
        await api.make(name)
    await rollups.stock(database, "own")
    await rollups.stock_cluster(database)
    headers = await reader(api, "own")
    before = await shown(api, headers, *VIEWS)
    assert before["summary"]["total"]["runs"] == 1
    assert before["failures"]["total"] == 1
    assert before["schedule-minutes"]["minutes"] is None
    [move] = before["schedule-minutes"]["moves"]
    assert (move["place"], move["highest_before"], move["highest_after"]) == (1, None, None)

    other = ("secretive", "daily")
    hidden: dict[str, Any] = {
        **rollups.EVERY,
        "workflow_days": [workflow_day(1_000_003, 99_999.0, failed=500_009)],
        "task_days": [task_day("secret-task", 2_000_003)],
        "failures": [
            failure(
                "secret-task",
                count_day=777_777,
                sample="secret words",
                first_seen="2026-01-01T00:00:01.000000Z",
                last_seen="2026-01-31T23:59:59.000000Z",
            )
        ],
        "costs": [cost("secret-task", 5e6), cost("secret-task", 5e6, "team", "secret-team")],
        "schedule_moves": [rollups.move(place=-1, schedule_id=10_000_019)],
    }
    for job, rows in hidden.items():
        await rollups.add(database, job, DAY, {other: rows})
    boss = await shown(api, {}, "summary", "failures")  # who sees all, and fills what is kept
    assert boss["summary"]["total"]["runs"] == 1_000_004
    assert boss["failures"]["items"][0]["sample"] == "secret words"
    assert await shown(api, headers, *VIEWS) == before
    for view, found in (await shown(api, headers, *ASKING)).items():
        asked = {"project": "secretive"} if "tasks?" in view else {}
        text = str({**found, **dict.fromkeys(asked)})
        assert "secret" not in text, view
        assert not found.get("items"), view
        void = view.replace("secretive", "void")
        same = (await shown(api, headers, void))[void]
        assert {**found, **dict.fromkeys(asked)} == {**same, **dict.fromkeys(asked)}, view


async def test_rows_of_moves_do_not_tell_of_the_schedules_of_others(api: Api) -> None:
    await api.make("own")
    await rollups.stock(api.services.store.database, "own")
    rows = f"{PREFIX}/insight/rollup-rows?job=schedule_moves&day={DAY}"
    for headers, tells in ((await reader(api, "own"), False), ({}, True)):
        [item] = (await api.client.get(rows, headers=headers)).json()["items"]
        for row in item["rows"]:
            assert row["move_min"] == 3
            for name in ("place", "highest_before", "highest_after"):
                assert (row[name] is not None) == tells


async def test_load_is_for_who_may_see_the_cluster(api: Api) -> None:
    await api.make("own")
    await rollups.stock_cluster(api.services.store.database)
    headers = await reader(api, "own")
    answer = await api.client.get(f"{PREFIX}/insight/load", headers=headers)
    problem_of(answer, 403, "forbidden")
    rows = f"insight/rollup-rows?job=worker_days&day={DAY}"
    assert (await api.client.get(f"{PREFIX}/{rows}", headers=headers)).json()["items"] == []
    assert len((await api.client.get(f"{PREFIX}/{rows}")).json()["items"]) == 1


async def test_baseline_of_a_run_of_another_project_is_as_one_of_none(api: Api) -> None:
    await api.make("own")
    run = await api.run(project="secretive")
    await rollups.stock(api.services.store.database, "secretive")
    headers = await reader(api, "own")
    answers = [
        await api.client.get(f"{PREFIX}/instances/{one}/baseline", headers=headers)
        for one in (run.id, run.id + 1)
    ]
    problems = [problem_of(answer, 404, "not-found") for answer in answers]
    details = [
        one["detail"].replace(str(run.id + number), "<id>") for number, one in enumerate(problems)
    ]
    assert details[0] == details[1]
