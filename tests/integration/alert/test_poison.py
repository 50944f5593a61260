"""One bad event, message or alert stops itself alone, and is quarantined with a reason."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text, update

from shoal.alert.jobs import event_reader
from shoal.core.alerts.occurrences import Occurrence, occurrence
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from shoal.core.runs.records import ChangeEvent
from shoal.core.runs.run import Run
from shoal.sql.repositories.events import NewEvent
from shoal.sql.schema.tables import alert, task_instance, workflow_instance
from tests.integration.alert.conftest import Site
from tests.integration.sql.given import created, definition, published
from tests.support.servers.http_server import answer, says
from tests.support.waiting import DEADLINE_S

DEEP = "[" * 100_000
DIGITS = "9" * 5_000
LONG = "x" * (10 << 20)
ENDS = (datetime(9999, 12, 31, 23, tzinfo=UTC), datetime(1, 1, 1, 1, tzinfo=UTC))
OUTPUTS: Mapping[str, Mapping[str, str]] = {
    "digits": {"warned": DIGITS, "row_count": DIGITS},
    "deep rows": {"warned": "1", "rows": DEEP},
    "deep checks": {"warned": "1", "checks": '[{"a":' * 5_000},
    "deep value": {"warned": "1", "rows": f'[{{"a": {"[" * 900}{"]" * 900}}}]'},
    "long number": {"warned": "1", "rows": f'[{{"a": {DIGITS}}}]'},
    "no numbers": {"warned": "NaN", "rows": '[{"a": NaN, "b": -Infinity, "c": 1e999}]'},
    "surrogates": {"warned": "1", "rows": '[{"\\ud800": "\\udfff", "b": "\\u0000"}]'},
    "NUL": {"warned": "1\0", "text": "a\0b\ud800"},
    "long": {"warned": "1", "rows": f'[{{"a": "{LONG}"}}]'},
    "other digits": {"warned": "١٢", "row_count": "²"},
}


@pytest.fixture
async def other(site: Site) -> Site:
    """Another project, whose alerts go to another path of the sink."""
    found = replace(site, project="q")
    site.sink.handlers["/q"] = says(answer(200, "ok"))
    await found.channel(options={"url": f"{site.sink.url}/q"})
    await found.receiver()
    await found.rule(triggers=["run.failed", "task.warned", "task.succeeded"])
    return found


async def task_run(site: Site, name: str = "daily", **fields: Any) -> Run:
    """A run of a workflow with one task."""
    workflow = await published(
        site.database, definition(name, ["count"], project=site.project, timezone="Asia/Shanghai")
    )
    fields = {"timezone": "Asia/Shanghai"} | fields
    [run] = await created(site.database, workflow, **fields)
    return run


async def task_ended(site: Site, run: Run, outputs: Mapping[str, str], **data: Any) -> None:
    """The task of a run succeeds with these outputs, as masters store it."""
    attempt = run.attempts["count"]
    data = {"workflow": "daily", "task": "count", "attempt": 1, "state": "SUCCEEDED"} | data
    event = NewEvent(datetime.now(UTC), "task.state", site.project, data, run.id, attempt.id)
    async with site.database.unit_of_work() as uow:
        changed = update(task_instance).where(task_instance.c.id == attempt.id)
        await uow.connection.execute(changed.values(outputs=outputs, state="SUCCEEDED"))
        await uow.events.add([event])
        await uow.commit()


@pytest.mark.parametrize("outputs", OUTPUTS.values(), ids=OUTPUTS.keys())
async def test_junk_in_outputs_stops_nobody(
    ready: Site, other: Site, outputs: Mapping[str, str]
) -> None:
    await ready.rule("data", triggers=["task.warned"])
    await ready.rule("results", triggers=["task.succeeded"])
    await task_ended(ready, await task_run(ready), outputs)
    await other.fails(run=2)
    async with ready.server():
        [facts] = await ready.until(1, "/q")
        found = await ready.settled()
        assert found
    assert facts["alerts"][0]["instance_id"] == 2
    assert {one.state for one in found} == {"SENT"}
    assert await ready.quarantined() == []
    warned = [one.reason for one in await ready.alerts() if one.trigger == "task.warned"]
    if outputs["warned"] == DIGITS:
        assert warned == ["more than 999,999,999,999,999 checks of the data do not hold"]


@pytest.mark.parametrize("moment", ENDS, ids=["9999", "1"])
async def test_runs_at_the_ends_of_the_calendar_are_told(
    ready: Site, other: Site, moment: datetime
) -> None:
    run = await task_run(ready, logical_time=moment)
    await ready.fails(run=run.id)
    await other.fails(run=2)
    async with ready.server():
        [facts] = await ready.until(1)
        await ready.until(1, "/q")
        [delivery] = await ready.settled()
    assert (delivery.state, facts["alerts"][0]["instance_id"]) == ("SENT", run.id)
    assert "reduced" not in facts
    assert await ready.quarantined() == []


# What another version of Shoal, or a hand, may have written.
EVENTS: Mapping[str, dict[str, Any]] = {
    "no number": {"kind": "task.state", "state": "FAILED", "task": "a", "attempt": "x"},
    "no name": {"kind": "task.state", "state": "FAILED", "task": [1]},
    "no reason": {"kind": "task.state", "state": "FAILED", "task": "a", "reason": {"a": 1}},
    "long name": {"kind": "instance.state", "state": "FAILED", "workflow": "w" * 1_000},
    "no subject": {"kind": "instance.state", "state": "FAILED", "reason": [1]},
}


@pytest.mark.parametrize("data", EVENTS.values(), ids=EVENTS.keys())
async def test_bad_event_is_quarantined_and_its_neighbours_are_told(
    ready: Site, other: Site, data: dict[str, Any]
) -> None:
    if ready.database.kind == "sqlite" and len(str(data.get("workflow"))) > 255:
        pytest.skip("SQLite's columns have no length")
    await ready.rule(triggers=["run.failed", "task.failed"])
    bad = {"workflow": "bad", "run": 7} | data
    retry = {"kind": "task.state", "workflow": "bad", "run": 7, "task": "a", "attempt": 2}
    for number in range(1, 4):
        await other.fails(f"before{number}", run=number)
    await ready.happens(bad, {**retry, "state": "QUEUED"})
    await ready.fails("good", run=8)
    for number in range(1, 4):
        await other.fails(f"after{number}", run=10 + number)
    async with ready.server():
        async with asyncio.timeout(DEADLINE_S):
            while len(await other.alerts()) < 6 or not await ready.alerts():
                await asyncio.sleep(0.05)
        await ready.settled()
        await other.settled()
    told = [one.workflow for one in await other.alerts()]
    assert told == [f"{when}{number}" for when in ("before", "after") for number in (1, 2, 3)]
    assert [one.workflow for one in await ready.alerts()] == ["good"]
    [record] = await ready.quarantined()
    assert (record.kind, record.project, record.tries) == (ItemKind.EVENT, "p", 1)
    assert record.is_skipped
    assert record.reason
    async with ready.server():  # it is behind the position now
        await other.fails("later", run=20)
        async with asyncio.timeout(DEADLINE_S):
            while len(await other.alerts()) < 7:
                await asyncio.sleep(0.05)
    assert len(await ready.quarantined()) == 1


async def test_skipped_event_that_is_retried_becomes_an_alert(
    ready: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ready.rule(triggers=["task.failed"])
    read = occurrence

    def broken(event: ChangeEvent) -> Occurrence | None:
        if event.data.get("workflow") == "bad":
            raise RuntimeError("a defect")
        return read(event)

    monkeypatch.setattr(event_reader, "occurrence", broken)
    await ready.happens({"kind": "task.state", "state": "FAILED", "workflow": "bad", "task": "a"})
    await ready.happens({"kind": "task.state", "state": "FAILED", "workflow": "good", "task": "a"})
    async with ready.server():
        await ready.until(1)
        [record] = await ready.quarantined()
        position = await _position(ready)
        await _retry(ready, record)
        async with asyncio.timeout(DEADLINE_S):
            while (found := await ready.quarantined())[0].tries < 2:
                await asyncio.sleep(0.05)
        assert found[0].retry_at is None  # once for each request
        monkeypatch.setattr(event_reader, "occurrence", read)
        await _retry(ready, record)
        [_, facts] = await ready.until(2)
        async with asyncio.timeout(DEADLINE_S):
            while await ready.quarantined():
                await asyncio.sleep(0.05)
    assert [one["workflow"] for one in facts["alerts"]] == ["bad"]
    assert await _position(ready) >= position


async def test_purged_event_that_is_retried_says_so(ready: Site) -> None:
    record = QuarantinedItem(
        kind=ItemKind.EVENT,
        item="999999",
        partition=None,
        reason="why",
        tries=1,
        since=datetime.now(UTC),
        consumer=ItemConsumer.ALERTS,
        is_skipped=True,
    )
    async with ready.database.unit_of_work() as uow:
        await uow.quarantine.note(record)
        await uow.commit()
    await _retry(ready, record)
    async with ready.server():
        async with asyncio.timeout(DEADLINE_S):
            while (found := await ready.quarantined())[0].tries < 2:
                await asyncio.sleep(0.05)
    assert "event 999999" in found[0].reason


async def _retry(site: Site, one: QuarantinedItem) -> None:
    async with site.database.unit_of_work() as uow:
        await uow.quarantine.request_retry(one.kind, one.item, one.consumer, datetime.now(UTC))
        await uow.commit()


async def _position(site: Site) -> int:
    async with site.database.unit_of_work(read_only=True) as uow:
        return await uow.alert_jobs.position() or 0


async def test_failed_message_that_is_sent_again_arrives(ready: Site) -> None:
    ready.sink.handlers["/hook"] = says(answer(400, "no"))
    async with ready.server():
        await ready.fails(run=1)
        [failed] = await ready.settled()
        assert failed.state == "FAILED"
        ready.sink.handlers["/hook"] = says(answer(200, "ok"))
        async with ready.database.unit_of_work() as uow:
            await uow.projects.set_description("p", "events never come first")
            assert await uow.deliveries.send_again(failed.id, datetime.now(UTC))
            assert not await uow.deliveries.send_again(failed.id, datetime.now(UTC))
            await uow.commit()
        await ready.until(2)
        [sent] = await ready.settled()
    assert (sent.id, sent.state, sent.tries) == (failed.id, "SENT", 2)


async def test_position_moves_past_a_skipped_event_with_its_record(ready: Site) -> None:
    await ready.rule(triggers=["task.failed"])
    await ready.happens({"kind": "task.state", "state": "FAILED", "workflow": "bad", "task": [1]})
    async with ready.server():
        async with asyncio.timeout(DEADLINE_S):
            while not await ready.quarantined():
                await asyncio.sleep(0.05)
    async with ready.database.unit_of_work(read_only=True) as uow:
        assert await uow.alert_jobs.position() == await uow.events.last_id()
    async with ready.server():
        await ready.happens(
            {"kind": "task.state", "state": "FAILED", "workflow": "good", "task": "a"}
        )
        await ready.until(1)
    [record] = await ready.quarantined()
    assert record.tries == 1


async def test_message_that_cannot_be_written_is_sent_as_plain_text(
    ready: Site, other: Site
) -> None:
    await ready.rule(group_for=1)
    run = await task_run(ready)
    async with ready.database.unit_of_work() as uow:
        changed = update(workflow_instance).where(workflow_instance.c.id == run.id)
        await uow.connection.execute(changed.values(timezone="Mars/Olympus"))
        await uow.commit()
    await ready.fails(run=run.id, reason="1 task failed")
    await ready.fails("neighbour", run=99)  # grouped with it
    await other.fails(run=2)
    async with ready.server():
        await ready.until(1, "/q")
        [facts] = await ready.until(1)
        [delivery] = await ready.settled()
    assert (delivery.state, facts["total"]) == ("SENT", 2)
    assert {one["workflow"] for one in facts["alerts"]} == {"daily", "neighbour"}
    assert "Mars/Olympus" in facts["reduced"]
    [record] = await ready.quarantined()
    assert (record.kind, record.item, record.project) == (ItemKind.MESSAGE, str(delivery.id), "p")
    assert "Mars/Olympus" in record.reason


async def test_message_that_cannot_be_read_fails_and_holds_up_no_other(
    ready: Site, other: Site
) -> None:
    """More of them than a share takes at once, all due before the good one."""
    await ready.rule(repeat_every=60)
    async with ready.server():
        await ready.fails(run=1)
        [good] = await ready.settled()
    async with ready.database.unit_of_work() as uow:
        await uow.connection.execute(
            text(
                "INSERT INTO alert_delivery (project_id, rule, receiver, channel, recipients, kind,"
                " share, state, due_at, tries, created_at)"
                " SELECT project_id, rule, receiver, channel, recipients, 'OF_LATER', share,"
                f" 'PENDING', due_at, 0, created_at FROM alert_delivery, ({_NUMBERS}) n"
                f" WHERE alert_delivery.id = {good.id}"
            )
        )
        await uow.commit()
    await ready.fails("late", run=2)
    await other.fails(run=3)
    async with ready.server():
        await ready.until(2)
        await ready.until(1, "/q")
        async with asyncio.timeout(DEADLINE_S):
            while len(await ready.quarantined()) < 25:
                await asyncio.sleep(0.05)
    async with ready.database.unit_of_work(read_only=True) as uow:
        rows = await uow.connection.rows(
            text("SELECT state, answer FROM alert_delivery WHERE kind = 'OF_LATER'")
        )
    assert {row.state for row in rows} == {"FAILED"}
    assert all("OF_LATER" in row.answer for row in rows)


_NUMBERS = " UNION ALL ".join(f"SELECT {number} AS x" for number in range(25))


async def test_alert_that_cannot_be_attended_to_holds_up_no_other(ready: Site, other: Site) -> None:
    await ready.rule(repeat_every=60)
    await other.rule(repeat_every=60)
    async with ready.server():
        await ready.fails(run=1)
        await other.fails(run=2)
        await ready.until(1)
        await ready.until(1, "/q")
    async with ready.database.unit_of_work() as uow:
        soon = datetime.now(UTC) - timedelta(seconds=1)
        await uow.connection.execute(update(alert).values(next_at=soon))
        bad = update(alert).where(alert.c.workflow == "daily", alert.c.instance_id == 1)
        await uow.connection.execute(bad.values(severity="of-later"))
        await uow.commit()
    async with ready.server():
        reminders = await ready.until(2, "/q")
        async with asyncio.timeout(DEADLINE_S):
            while not (found := await ready.quarantined()):
                await asyncio.sleep(0.05)
    assert reminders[-1]["kind"] == "REMINDER"
    assert [(one.kind, one.is_skipped) for one in found] == [(ItemKind.ALERT, False)]
