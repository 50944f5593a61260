"""From an event to a message: what is told, who is told, and that it is once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from shoal.alert.jobs import event_reader
from shoal.core.alerts.records import DefinitionKind
from shoal.sql.repositories.events import NewEvent
from shoal.sql.schema.tables import alert, task_instance
from tests.integration.alert.conftest import Site
from tests.integration.sql.given import created, definition, published
from tests.support.servers.http_server import answer, says
from tests.support.waiting import DEADLINE_S


async def test_a_failed_run_is_told_once(ready: Site) -> None:
    async with ready.server():
        await ready.fails(run=7, reason="1 task failed")
        [facts] = await ready.until(1)
        await ready.settled()
    assert (facts["kind"], facts["severity"], facts["project"]) == ("FIRING", "warning", "p")
    assert facts["subject"] == "[warning] p: daily failed"
    [alert] = facts["alerts"]
    assert (alert["trigger"], alert["workflow"], alert["instance_id"]) == ("run.failed", "daily", 7)
    assert (alert["reason"], alert["state"]) == ("1 task failed", "OPEN")
    [request] = ready.requests()
    assert request.headers["idempotency-key"] == facts["key"]
    [delivery] = await ready.deliveries()
    assert (delivery.state, delivery.tries, delivery.answer) == ("SENT", 1, "200 ok")
    [stored] = await ready.alerts()
    assert stored.told_at is not None


async def test_what_happened_while_no_server_ran_is_told(ready: Site) -> None:
    await ready.fails(run=1)
    async with ready.server():
        await ready.until(1)
    await ready.fails(run=2)
    await ready.fails("other", run=3)
    async with ready.server():
        found = await ready.until(2)
        await ready.settled(2)
    told = [alert["instance_id"] for facts in found for alert in facts["alerts"]]
    assert sorted(told) == [1, 2, 3]


async def test_a_rule_is_not_about_what_happened_before_it(site: Site) -> None:
    await site.channel()
    await site.receiver()
    await site.fails(run=1)
    await site.rule()
    async with site.server():
        await site.fails(run=2)
        [facts] = await site.until(1)
    assert [one["instance_id"] for one in facts["alerts"]] == [2]


async def test_what_belongs_together_is_one_message(ready: Site) -> None:
    await ready.rule(group_for=1)
    async with ready.server():
        for run in range(1, 6):
            await ready.fails(f"w{run}", run=run)
        [facts] = await ready.until(1)
    assert facts["total"] == 5
    assert facts["subject"] == "[warning] p: w5 failed and 4 more"


async def test_what_recovers_in_time_is_not_told(ready: Site) -> None:
    await ready.rule(group_for=2)
    async with ready.server():
        await ready.fails(run=1)
        await ready.succeeds(run=2)
        await ready.fails("other", run=3)
        [facts] = await ready.until(1)
        found = await ready.settled()
    assert [one.state for one in found] == ["SENT"]
    assert {one["workflow"]: one["state"] for one in facts["alerts"]} == {
        "daily": "RESOLVED",
        "other": "OPEN",
    }
    ready.sink.received.clear()
    async with ready.server():
        await ready.fails(run=4)
        await ready.succeeds(run=5)
        [*_, last] = await ready.settled(2)
    assert (last.state, ready.got()) == ("WITHDRAWN", [])


async def test_who_was_told_is_told_of_the_recovery(ready: Site) -> None:
    async with ready.server():
        await ready.fails(run=1)
        await ready.until(1)
        await ready.settled()
        await ready.succeeds(run=2)
        [_, facts] = await ready.until(2)
    assert (facts["kind"], facts["subject"]) == ("RESOLVED", "[warning] p: recovered: daily failed")
    [alert] = await ready.alerts()
    assert (alert.state, alert.resolved_at is not None) == ("RESOLVED", True)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"workflows": ["dai*"]}, True),
        ({"workflows": ["weekly"]}, False),
        ({"triggers": ["run.succeeded"]}, False),
        ({"labels": ["team=a"]}, False),
        ({"enabled": False}, False),
    ],
)
async def test_rules_pick(ready: Site, rule: dict[str, Any], told: bool) -> None:
    await ready.rule(**rule)
    await ready.rule("others", workflows=["end"])
    async with ready.server():
        await ready.fails(run=1)
        await ready.fails("end", run=2)
        await ready.settled(1 + told)
    assert len(await ready.alerts()) == 1 + told


async def test_a_task_that_is_tried_again_has_not_failed_yet(ready: Site) -> None:
    await ready.rule(triggers=["task.failed"])
    await ready.rule("retries", triggers=["task.retrying"])
    task = {"kind": "task.state", "workflow": "daily", "task": "load", "run": 1}
    async with ready.server():
        await ready.happens(
            {**task, "attempt": 1, "state": "FAILED"}, {**task, "attempt": 2, "state": "QUEUED"}
        )
        await ready.happens({**task, "attempt": 2, "state": "FAILED"})
        # Somebody has it run again: another decision, at another time.
        await ready.happens({**task, "attempt": 3, "state": "QUEUED"})
        await ready.settled(2)
        found = {(one.rule, one.trigger) for one in await ready.alerts()}
        assert found == {("retries", "task.retrying"), ("failures", "task.failed")}
        await ready.happens({**task, "attempt": 3, "state": "SUCCEEDED"})
        async with asyncio.timeout(DEADLINE_S):
            while any(one.state == "OPEN" for one in await ready.alerts()):
                await asyncio.sleep(0.02)


async def test_a_retry_behind_events_of_another_master_is_found(
    ready: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids of two transactions lie among each other, and a batch ends between them."""
    monkeypatch.setattr(event_reader, "_BATCH", 2)
    monkeypatch.setattr(event_reader, "_DECISION", 1)
    await ready.rule(triggers=["task.failed"])
    await ready.rule("retries", triggers=["task.retrying"])
    at = datetime.now(UTC)
    task = {"workflow": "daily", "task": "load"}
    stored = [
        NewEvent(at, "task.state", "p", {**task, "attempt": 1, "state": "FAILED"}, 1),
        NewEvent(at + timedelta(seconds=1), "alert.state", "p", {"state": "OPEN"}, 1),
        NewEvent(at + timedelta(seconds=1), "task.state", "p", {"state": "RUNNING"}, 2),
        *[NewEvent(at, "task.state", "p", {"task": f"t{n}", "state": "FAILED"}, 1) for n in "ab"],
        NewEvent(at, "task.state", "p", {**task, "attempt": 2, "state": "QUEUED"}, 1),
    ]
    async with ready.database.unit_of_work() as uow:
        await uow.projects.set_description("p", "events never come first")
        await uow.events.add(stored)
        await uow.commit()
    async with ready.server():
        await ready.settled(2)
        async with asyncio.timeout(DEADLINE_S):
            while len(await ready.alerts()) < 3:
                await asyncio.sleep(0.02)
    found = [(one.rule, one.task) for one in await ready.alerts()]
    assert found == [("retries", "load"), ("failures", "ta"), ("failures", "tb")]


async def test_several_ways_are_told_apart(site: Site) -> None:
    site.sink.handlers |= {"/one": says(answer(200)), "/two": says(answer(200))}
    await site.channel("one")
    await site.channel("two")
    await site.receiver("ops", {"channel": "one"}, {"channel": "two"}, {"channel": "gone"})
    await site.rule()
    async with site.server():
        await site.fails(run=1)
        await site.until(1, "/one")
        await site.until(1, "/two")
        found = {one.channel: one for one in await site.settled(3)}
    assert [found[name].state for name in ("one", "two", "gone")] == ["SENT", "SENT", "FAILED"]
    assert "there is no channel gone" in str(found["gone"].answer)


async def test_quiet_hours_put_messages_off_but_not_critical_ones(ready: Site) -> None:
    now = datetime.now(UTC)
    hours = {
        "since": f"{now - timedelta(hours=1):%H:%M}",
        "until": f"{now + timedelta(hours=2):%H:%M}",
    }
    await ready.rule("quiet", quiet=[hours])
    await ready.rule("urgent", quiet=[hours], severity="critical")
    await ready.rule(enabled=False)
    async with ready.server():
        await ready.fails(run=1)
        [facts] = await ready.until(1)
        assert facts["rule"] == "urgent"
        waiting = next(one for one in await ready.deliveries() if one.rule == "quiet")
    assert waiting.state == "PENDING"
    assert timedelta(hours=1) < waiting.due_at - now <= timedelta(hours=2)


async def test_critical_alert_does_not_wait_in_a_message_of_quiet_hours(ready: Site) -> None:
    now = datetime.now(UTC)
    hours = {
        "since": f"{now - timedelta(hours=1):%H:%M}",
        "until": f"{now + timedelta(hours=2):%H:%M}",
    }
    await ready.rule(quiet=[hours])
    async with ready.server():
        await ready.fails(run=1)
        async with asyncio.timeout(DEADLINE_S):
            while not await ready.deliveries():
                await asyncio.sleep(0.02)
    await ready.rule(quiet=[hours], severity="critical")
    async with ready.server():  # a new one: it knows the rule as it is now
        await ready.fails("other", run=2)
        [facts] = await ready.until(1)
    assert {one["workflow"] for one in facts["alerts"]} == {"daily", "other"}


async def test_reminders_and_escalations_until_somebody_acknowledges(ready: Site) -> None:
    ready.sink.handlers["/boss"] = says(answer(200))
    await ready.channel("boss")
    await ready.receiver("boss", {"channel": "boss"})
    await ready.rule(repeat_every=60, escalation=[{"after": 1, "receivers": ["boss"]}])
    async with ready.server():
        await ready.fails(run=1)
        await ready.until(1)
        [escalated] = await ready.until(1, "/boss")
        assert escalated["kind"] == "ESCALATION"
        [alert] = await ready.alerts()
        assert alert.next_at is not None
        async with ready.database.unit_of_work() as uow:
            await uow.alerts.schedule(alert.id, datetime.now(UTC), alert.steps, None)
            await uow.commit()
        [_, reminder] = await ready.until(2)
        assert reminder["kind"] == "REMINDER"
        async with ready.database.unit_of_work() as uow:
            found = await uow.alerts.acknowledge("p", alert.id, "ada", datetime.now(UTC))
            await uow.commit()
        assert (found.acknowledged_by, found.next_at) == ("ada", None)


async def test_a_silence_covers_and_ends(ready: Site) -> None:
    async with ready.server():
        await ready.fails("before", run=1)
        await ready.until(1)
        now = datetime.now(UTC)
        async with ready.database.unit_of_work() as uow:
            silence = await uow.alert_definitions.silence(
                "p", "dai*", "", "", now, now + timedelta(seconds=3), "upgrade", "ada"
            )
            await uow.commit()
        await ready.fails(run=2)
        await ready.fails("other", run=3)
        [_, facts] = await ready.until(2)
        assert [one["workflow"] for one in facts["alerts"]] == ["other"]
        [_, silenced, _] = await ready.alerts()
        assert (silenced.silenced_by, silenced.told_at) == (silence.id, None)
        # It goes on when the silence is over.
        [_, _, later] = await ready.until(3)
        assert [one["workflow"] for one in later["alerts"]] == ["daily"]


async def test_alerts_of_a_silence_that_is_ended_early_are_told(ready: Site) -> None:
    now = datetime.now(UTC)
    async with ready.database.unit_of_work() as uow:
        silence, longer = [
            await uow.alert_definitions.silence(
                "p", workflow, "", "", now, now + timedelta(days=7), "upgrade", "ada"
            )
            for workflow in ("daily", "weekly")
        ]
        await uow.commit()
    async with ready.server():
        await ready.fails(run=1)
        await ready.fails("weekly", run=2)
        async with asyncio.timeout(DEADLINE_S):
            while len(await ready.alerts()) < 2:
                await asyncio.sleep(0.02)
        async with ready.database.unit_of_work() as uow:
            await uow.alert_definitions.end_silence("p", silence.id)
            await uow.commit()
        [facts] = await ready.until(1)
    assert [one["workflow"] for one in facts["alerts"]] == ["daily"]
    assert facts["kind"] == "FIRING"
    [_, other] = await ready.alerts()
    assert (other.silenced_by, other.told_at) == (longer.id, None)


async def test_open_alerts_outlive_their_time(ready: Site) -> None:
    """What is open is still to be told as over; what has ended is kept from its end on."""
    async with ready.server():
        for workflow in ("open", "ended", "ended late"):
            await ready.fails(workflow)
        await ready.succeeds("ended")
        await ready.succeeds("ended late")
        async with asyncio.timeout(DEADLINE_S):
            while sum(one.state == "RESOLVED" for one in await ready.alerts()) < 2:
                await asyncio.sleep(0.02)
    await published(ready.database, definition("open", ["a"], project="p"))
    now = datetime.now(UTC)
    async with ready.database.unit_of_work() as uow:
        long_ago = now - timedelta(days=99)
        await uow.connection.execute(update(alert).values(at=long_ago))
        early = update(alert).where(alert.c.workflow == "ended")
        await uow.connection.execute(early.values(resolved_at=long_ago))
        assert await uow.alerts.prune(now - timedelta(days=90), 10) == 1
        await uow.commit()
    assert [one.workflow for one in await ready.alerts()] == ["open", "ended late"]


async def test_old_open_alerts_go_whose_end_nobody_hears_of(ready: Site) -> None:
    """Their workflow or rule is gone, or a newer alert of the rule is open about the same."""
    for workflow in ("kept", "repeated"):
        await published(ready.database, definition(workflow, ["a"], project="p"))
    async with ready.server():
        for run, workflow in enumerate(("kept", "gone", "repeated", "repeated"), 1):
            await ready.fails(workflow, run=run)
        async with asyncio.timeout(DEADLINE_S):
            while len(await ready.alerts()) < 4:
                await asyncio.sleep(0.02)
    now = datetime.now(UTC)

    async def pruned() -> list[tuple[str, int | None]]:
        async with ready.database.unit_of_work() as uow:
            await uow.alerts.prune(now - timedelta(days=90), 10)
            await uow.commit()
        return sorted((one.workflow, one.instance_id) for one in await ready.alerts())

    assert len(await pruned()) == 4  # they are not old
    async with ready.database.unit_of_work() as uow:
        await uow.connection.execute(update(alert).values(at=now - timedelta(days=99)))
        await uow.commit()
    assert await pruned() == [("kept", 1), ("repeated", 4)]
    async with ready.database.unit_of_work() as uow:
        await uow.alert_definitions.delete("p", DefinitionKind.RULE, "failures")
        await uow.commit()
    assert await pruned() == []


async def task_ended(site: Site, outputs: dict[str, str]) -> None:
    """A task of a run succeeds with these outputs, as masters store it."""
    workflow = await published(site.database, definition("daily", ["count"], project="p"))
    [run] = await created(site.database, workflow)
    attempt = run.attempts["count"]
    data = {"workflow": "daily", "task": "count", "attempt": 1, "state": "SUCCEEDED"}
    event = NewEvent(datetime.now(UTC), "task.state", "p", data, run.id, attempt.id)
    async with site.database.unit_of_work() as uow:
        changed = update(task_instance).where(task_instance.c.id == attempt.id)
        await uow.connection.execute(changed.values(outputs=outputs, state="SUCCEEDED"))
        await uow.events.add([event])
        await uow.commit()


async def test_result_of_a_task_is_told(ready: Site) -> None:
    await ready.rule("results", triggers=["task.succeeded"], tasks=["count"])
    async with ready.server():
        await task_ended(ready, {"rows": '[{"orders": 17}]', "row_count": "1"})
        [facts] = await ready.until(1)
    [alert] = facts["alerts"]
    assert alert["outputs"] == {"rows": '[{"orders": 17}]', "row_count": "1"}
    assert (alert["state"], facts["subject"]) == ("TOLD", "[warning] p: daily: count")


@pytest.mark.parametrize(("count", "told"), [("2", 1), ("0", 0)])
async def test_checks_that_warn_are_told(ready: Site, count: str, told: int) -> None:
    await ready.rule("data", triggers=["task.warned"])
    async with ready.server():
        await task_ended(ready, {"warned": count, "checks": "[]"})
        await ready.fails(run=99)  # behind it
        await ready.until(1 + told)
        found = await ready.alerts()
    reasons = [one.reason for one in found if one.trigger == "task.warned"]
    assert reasons == ["2 checks of the data do not hold"] * told


async def test_templates_word_messages_and_broken_ones_lose_none(ready: Site) -> None:
    words = {"subject": "{{ alerts[0].workflow | upcase }}", "text": "run {{ key }}"}
    await ready.rule(templates=words)
    async with ready.server():
        await ready.fails(run=7)
        [facts] = await ready.until(1)
        assert facts["subject"] == "DAILY"
        await ready.rule(templates={"subject": "{{ alerts[0].nothing }}"})
        await ready.fails("other", run=8)
        [_, facts] = await ready.until(2)
    assert facts["subject"] == "[warning] p: other failed"
