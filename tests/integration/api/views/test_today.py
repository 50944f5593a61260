"""What happens around now."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from shoal.core.runs.states import TaskState, WorkflowState
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.integration.api.views.runs import happened

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
_T, _W = TaskState, WorkflowState


async def today(api: Api, **query: Any) -> Any:
    answer = await api.client.get(f"{PREFIX}/today", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_what_wants_attention_comes_first(api: Api) -> None:
    for name in ("calm", "broken", "mended", "stuck", "busy"):
        await api.publish(name)
    await happened(api, "calm", at=NOW)
    await happened(api, "broken", at=NOW, state=_W.FAILED)
    await happened(api, "mended", at=NOW, state=_W.FAILED)
    await happened(api, "mended", at=NOW)
    await happened(api, "stuck", at=NOW, state=_W.RUNNING, tasks={"fetch": _T.QUEUED})
    await happened(api, "busy", at=NOW, state=_W.RUNNING, tasks={"fetch": _T.RUNNING})
    await api.publish("late", schedules=[{"cron": "0 0 6 * * ?"}])
    await _planned(api, NOW - timedelta(minutes=10))
    shown = await today(api)
    assert [(one["workflow"], one["rank"]) for one in shown["items"]] == [
        ("late", "late"),
        ("broken", "failed"),
        ("stuck", "waiting"),
        ("busy", "running"),
        ("calm", "done"),
        ("mended", "done"),
    ]
    assert shown["ranks"] == {"late": 1, "failed": 1, "waiting": 1, "running": 1, "done": 2}
    late, _, stuck, busy, *_ = shown["items"]
    [said] = late["late"]
    assert said["said"]["code"] == "fire.late"
    assert said["said"]["arguments"]["schedule"] == said["schedule_id"]
    assert stuck["runs"][0]["waits_for"] == {
        "code": "tasks.queued",
        "arguments": {"tasks": 1},
        "text": "tasks that wait for a worker: 1",
    }
    assert busy["runs"][0]["waits_for"] is None


async def _planned(api: Api, at: datetime) -> None:
    async with api.services.store.unit_of_work() as uow:
        moment = int(at.timestamp() * 1_000_000)
        statement = text("UPDATE schedule SET next_fire_at = :at")
        await uow.connection.execute(statement, {"at": moment})
        await uow.commit()


async def test_a_day_that_has_failed_stays_until_a_success_for_it(api: Api) -> None:
    await api.publish()
    failed = await happened(api, "daily", at=NOW - DAY, state=_W.FAILED, schedule_id=7)
    by_hand = await happened(api, "daily", at=NOW - 2 * DAY, state=_W.FAILED)
    await happened(api, "daily", at=NOW - 3 * DAY, backfill_id=3)
    [lane] = (await today(api))["items"]
    assert [one["is_resolved"] for one in lane["runs"]] == [False] * 3
    await happened(api, "daily", at=NOW, schedule_id=7)
    [lane] = (await today(api))["items"]
    resolved = {one["id"]: one["is_resolved"] for one in lane["runs"]}
    assert (lane["rank"], resolved[failed.id], resolved[by_hand.id]) == ("failed", False, True)
    await happened(api, "daily", at=NOW - DAY, backfill_id=3)
    [lane] = (await today(api))["items"]
    resolved = {one["id"]: one["is_resolved"] for one in lane["runs"]}
    assert (lane["rank"], resolved[failed.id], sum(resolved.values())) == ("done", True, 2)


async def test_why_a_run_as_a_whole_does_not_go_on(api: Api) -> None:
    await api.publish(overlap="queue")
    for state, tasks, code in (
        (_W.QUEUED, {}, "run.overlap"),
        (_W.PAUSED, {}, "run.paused"),
        (_W.STOPPING, {}, "run.stopping"),
        (_W.RUNNING, {"fetch": _T.BLOCKED}, "tasks.blocked"),
        (_W.RUNNING, {"fetch": _T.UP_FOR_RETRY}, "tasks.delayed"),
        (_W.RUNNING, {"fetch": _T.CLAIMED, "report": _T.QUEUED}, None),
    ):
        admitted = None if state is _W.QUEUED else NOW
        run = await happened(api, "daily", at=NOW, state=state, tasks=tasks, admitted_at=admitted)
        [lane] = (await today(api))["items"]
        assert lane["runs"][0]["id"] == run.id
        assert (lane["runs"][0]["waits_for"] or {"code": None})["code"] == code


async def test_a_run_beyond_its_timeout_is_late(api: Api) -> None:
    await api.publish()
    run = await happened(api, "daily", at=NOW, state=_W.RUNNING, tasks={"fetch": _T.RUNNING})
    async with api.services.store.unit_of_work() as uow:
        statement = text("UPDATE workflow_instance SET warned_at = created_at")
        await uow.connection.execute(statement)
        await uow.commit()
    [lane] = (await today(api))["items"]
    assert [(one["said"]["code"], one["instance_id"]) for one in lane["late"]] == [
        ("run.overdue", run.id)
    ]


async def test_a_run_beyond_its_deadline_is_late_until_it_ends(api: Api) -> None:
    await api.publish()
    past, ahead = NOW - timedelta(minutes=5), NOW + DAY
    for state, deadline_at, is_late in (
        (_W.RUNNING, past, True),
        (_W.PAUSED, past, True),
        (_W.QUEUED, past, True),
        (_W.RUNNING, ahead, False),
        (_W.RUNNING, None, False),
        (_W.FAILED, past, False),
    ):
        run = await happened(api, "daily", at=NOW, state=state, deadline_at=deadline_at)
        [lane] = (await today(api))["items"]
        late = {one["instance_id"]: one for one in lane["late"]}
        assert (run.id in late) == is_late, state
        shown = (await api.client.get(f"{PREFIX}/instances/{run.id}")).json()
        assert shown["is_late"] == is_late, state
        told = shown["deadline_at"] and datetime.fromisoformat(shown["deadline_at"])
        assert told == deadline_at
        if is_late:
            said = late[run.id]["said"]
            arguments = {"instance": run.id, "at": past.isoformat()}
            assert (said["code"], said["arguments"]) == ("run.late", arguments)
    listed = (await api.client.get(f"{PREFIX}/instances")).json()["items"]
    assert [one["is_late"] for one in reversed(listed)] == [True] * 3 + [False] * 3


async def test_the_window_has_what_began_in_it_and_what_is_open(api: Api) -> None:
    for name in ("old", "open", "new"):
        await api.publish(name)
    await happened(api, "old", at=NOW, created_at=NOW - 2 * DAY)
    await happened(api, "open", at=NOW, created_at=NOW - 2 * DAY, state=_W.PAUSED)
    await happened(api, "new", at=NOW)
    assert [one["workflow"] for one in (await today(api))["items"]] == ["open", "new"]
    since = (NOW - 3 * DAY).isoformat()
    shown = await today(api, since=since)
    assert [one["workflow"] for one in shown["items"]] == ["open", "new", "old"]
    first = await today(api, since=since, limit=2)
    second = await today(api, since=since, limit=2, cursor=first["next"])
    assert [one["workflow"] for one in second["items"]] == ["old"]
    assert (second["next"], second["ranks"]["done"]) == (None, 2)


async def test_next_fires_are_those_until_the_window_ends(api: Api) -> None:
    # At a minute of the hour that does not come while the test runs.
    now = datetime.now(UTC)
    minute = (now + timedelta(minutes=30)).minute
    await api.publish(schedules=[{"cron": f"0 {minute} * * * ?"}])
    until = now + timedelta(hours=3)
    [lane] = (await today(api, until=until.isoformat()))["items"]
    first = (now + timedelta(minutes=30)).replace(second=0, microsecond=0)
    expected = [first + timedelta(hours=n) for n in (0, 1, 2)]
    assert [datetime.fromisoformat(one["at"]) for one in lane["next_fires"]] == expected


async def test_windows_that_are_none(api: Api) -> None:
    for since, until in ((NOW, NOW), (NOW - 40 * DAY, NOW)):
        query = {"since": since.isoformat(), "until": until.isoformat()}
        answer = await api.client.get(f"{PREFIX}/today", params=query)
        assert "until" in fields_of(problem_of(answer, 422, "invalid-request"))


async def test_reasons_have_codes_also_those_that_were_stored_before(api: Api) -> None:
    await api.publish()
    run = await happened(api, "daily", at=NOW, state=_W.FAILED, tasks={"fetch": _T.FAILED})
    for of_run, of_task, codes in (
        ("2 tasks failed", "timed out after 4h 00m", ("reason.tasks_failed", "reason.timed_out")),
        ("out of order", "no such table: x", (None, None)),
        (None, None, (None, None)),
    ):
        async with api.services.store.unit_of_work() as uow:
            for table, reason in (("workflow_instance", of_run), ("task_instance", of_task)):
                statement = text(f"UPDATE {table} SET reason = :reason")
                await uow.connection.execute(statement, {"reason": reason})
            await uow.commit()
        shown = (await api.client.get(f"{PREFIX}/instances/{run.id}")).json()
        [listed] = (await api.client.get(f"{PREFIX}/task-instances?state=FAILED")).json()["items"]
        [lane] = (await today(api))["items"]
        of_fetch = next(one for one in shown["tasks"] if one["task"] == "fetch")
        for one, code in (
            (shown, codes[0]),
            (lane["runs"][0], codes[0]),
            (of_fetch, codes[1]),
            (listed, codes[1]),
        ):
            said = one["reason_said"]
            assert (said and said["code"]) == code
            assert said is None or said["text"] == one["reason"]
