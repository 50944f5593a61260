"""The live event stream over real sockets."""

import asyncio
import json
import sqlite3
from contextlib import AsyncExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from shoal.api.operations.feed import (
    EVENTS_AT_ONCE,
    WOKEN_AT_ONCE,
    Feed,
    SharedTexts,
    Subscription,
)
from shoal.api.services import Services
from shoal.api.settings import ApiSettings
from shoal.core.runs.records import ChangeEvent
from shoal.runtime.settings import ClusterSettings
from shoal.sql.repositories.events import NewEvent
from tests.integration.api.conftest import PREFIX, Api, fields_of, problem_of
from tests.integration.api.sse_reader import Reader, stream
from tests.support.waiting import DEADLINE_S

EVENTS = f"{PREFIX}/events"


async def add(
    services: Services, *names: str, project: str = "p", instance: int | None = 1
) -> None:
    """Store one event for each name, in one transaction."""

    async with services.store.unit_of_work() as uow:
        new = [
            NewEvent(datetime.now(UTC), "instance.state", project, {"name": name}, instance)
            for name in names
        ]
        await uow.events.add(new)
        await uow.commit()


async def names(reader: Reader, count: int) -> list[str]:
    """Read that many events and return the names in them."""
    found = []
    for _ in range(count):
        event = await reader.next()
        assert event is not None, "the stream has ended"
        content = json.loads(event.data)
        assert event.id == str(content["id"])
        found.append(content["data"]["name"])
    return found


async def test_what_happens_is_told_in_order(live: Api) -> None:
    async with stream(live.client, EVENTS) as reader:
        published = await live.publish()
        event = await reader.next()
        assert event is not None
        assert event.kind == "workflow.published"
        content = json.loads(event.data)
        assert content["project"] == "p"
        assert content["data"]["digest"] == published["digest"]
        assert content["at"].endswith("Z")
        run = await live.run("other")
        assert (await reader.next()) is not None
        event = await reader.next()
        assert event is not None
        assert event.kind == "instance.state"
        content = json.loads(event.data)
        assert content["instance_id"] == run.id
        assert content["data"]["state"] == "QUEUED"


async def test_filters(live: Api) -> None:
    async with (
        stream(live.client, f"{EVENTS}?project=q") as of_project,
        stream(live.client, f"{EVENTS}?instance_id=7") as of_instance,
    ):
        await add(live.services, "a")
        await add(live.services, "b", project="q", instance=7)
        await add(live.services, "c", instance=7)
        await add(live.services, "d", project="q")
        assert await names(of_project, 2) == ["b", "d"]
        assert await names(of_instance, 2) == ["b", "c"]


async def test_one_stream_is_about_several_things_and_some_kinds(live: Api) -> None:
    about = "about=instance:7&about=workflow:q/daily&about=project:r"
    async with (
        stream(live.client, f"{EVENTS}?{about}") as of_things,
        stream(live.client, f"{EVENTS}?kind=instance.state&kind=task.state") as of_kinds,
    ):
        await add(live.services, "a", instance=7)
        await add(live.services, "b", instance=8)
        for project, workflow, name in (("q", "daily", "c"), ("p", "daily", "d"), ("r", "x", "e")):
            data = {"workflow": workflow, "name": name}
            async with live.services.store.unit_of_work() as uow:
                now = datetime.now(UTC)
                await uow.events.add([NewEvent(now, "workflow.published", project, data)])
                await uow.commit()
        await add(live.services, "f", instance=7)
        assert await names(of_things, 4) == ["a", "c", "e", "f"]
        assert await names(of_kinds, 3) == ["a", "b", "f"]


async def test_what_was_missed_is_coalesced_if_asked_for(live: Api) -> None:
    await add(live.services, "first", instance=None)
    for number in range(3):
        await add(live.services, f"old {number}", instance=7)
        await add(live.services, f"other {number}", instance=8)
    async with stream(live.client, f"{EVENTS}?coalesce=true", **{"Last-Event-ID": "1"}) as reader:
        assert await names(reader, 2) == ["old 2", "other 2"]
        await add(live.services, "new", instance=7)
        assert await names(reader, 1) == ["new"]


async def test_a_slow_reader_that_coalesces_keeps_the_newest_and_the_order() -> None:
    def event(number: int, instance: int) -> ChangeEvent:
        return ChangeEvent(number, datetime.now(UTC), "task.state", "p", instance, 1, {})

    plain = Subscription(lambda _: True, 2)
    plain.offer([event(1, 1), event(2, 2), event(3, 1)])
    assert plain.too_slow
    few = Subscription(lambda _: True, 2, lambda one: one.workflow_instance_id)
    few.offer([event(1, 1), event(2, 2), event(3, 1), event(4, 2), event(5, 1)])
    assert not few.too_slow
    few.end()
    assert [[one.id for one in piece] async for piece in few.pieces()] == [[4, 5]]


async def test_about_what_there_is_not(live: Api) -> None:
    for wrong in ("about=task:7", "about=instance:x", "about=workflow:daily", "kind=task.lost"):
        answer = await live.client.get(f"{EVENTS}?{wrong}")
        field = wrong.partition("=")[0] + "[0]"
        assert field in fields_of(problem_of(answer, 422, "invalid-request"))


async def test_a_client_that_comes_back_misses_nothing(live: Api) -> None:
    async with stream(live.client, EVENTS) as reader:
        await add(live.services, "a")
        event = await reader.next()
        assert event is not None
    await add(live.services, *(f"m{n}" for n in range(1200)))
    await add(live.services, "other", project="q")
    resume = {"Last-Event-ID": str(event.id)}
    async with stream(live.client, f"{EVENTS}?project=p", **resume) as reader:
        await add(live.services, "z")
        assert await names(reader, 1201) == [*(f"m{n}" for n in range(1200)), "z"]


async def test_client_is_told_that_what_it_has_missed_is_gone(live: Api) -> None:
    await add(live.services, "a", "b", "c")
    async with live.services.store.unit_of_work(read_only=True) as uow:
        newest = await uow.events.last_id()
    async with stream(live.client, EVENTS, **{"Last-Event-ID": str(newest - 2)}) as reader:
        assert await names(reader, 2) == ["b", "c"]  # nothing is gone yet
    await live.store(lambda uow: uow.events.prune(datetime.now(UTC) + timedelta(days=1)))
    await add(live.services, "d")
    for seen in (newest - 2, newest + 1_000_000):  # purged, and of another database
        async with stream(live.client, EVENTS, **{"Last-Event-ID": str(seen)}) as reader:
            event = await reader.next()
            assert event is not None
            assert event.kind == "reset"
            assert json.loads(event.data)["data"]["after"] == int(event.id or "")
            await add(live.services, "e")
            assert (await names(reader, 1))[0] in ("d", "e")
        again = {"Last-Event-ID": event.id or ""}  # from there on nothing is gone
        async with stream(live.client, EVENTS, **again) as reader:
            await add(live.services, "f")
            assert "reset" not in await names(reader, 1)


async def test_without_an_id_only_what_is_new(live: Api) -> None:
    await add(live.services, "old")
    async with stream(live.client, EVENTS) as reader:
        await add(live.services, "new")
        assert await names(reader, 1) == ["new"]


async def test_ids_that_are_none(api: Api) -> None:
    for bad in ("x", "-1", "1.0", "9" * 30, "²"):
        answer = await api.client.get(EVENTS, headers={b"Last-Event-ID": bad.encode()})
        assert fields_of(problem_of(answer, 422, "invalid-request")).keys() == {"Last-Event-ID"}


async def test_one_reader_serves_all_and_rests_without_listeners(live: Api) -> None:
    shared = live.services.feed
    assert shared.listeners == 0
    async with stream(live.client, EVENTS), stream(live.client, EVENTS) as reader:
        assert shared.listeners == 2
        await add(live.services, "a")
        assert await names(reader, 1) == ["a"]
    async with asyncio.timeout(DEADLINE_S):
        while shared.listeners:  # the server notices closed connections a moment later
            await asyncio.sleep(0.01)
    assert shared._task is None


async def test_streams_end_when_the_process_stops(live: Api) -> None:
    async with stream(live.client, EVENTS) as reader:
        live.services.streams.stopping.set()
        last = await reader.next(comments=True)
        assert last is not None
        assert "the server stops" in last.comment
        assert await reader.next() is None


class TestQuietStream:
    """With a short heartbeat."""

    @pytest.fixture
    def settings(self) -> ApiSettings:
        return ApiSettings(port=0, heartbeat_s=0.05)

    async def test_comments_go_out_while_nothing_happens(self, live: Api) -> None:
        async with stream(live.client, EVENTS) as reader:
            for _ in range(3):
                found = await reader.next(comments=True)
                assert found is not None
                assert found.comment == "still here"
            await add(live.services, "a")
            assert await names(reader, 1) == ["a"]


def _event(number: int, **changes: Any) -> ChangeEvent:
    values = {"at": datetime.now(UTC), "kind": "task.state", "project": "p", "data": {}}
    more = {"workflow_instance_id": None, "task_instance_id": None}
    return ChangeEvent(id=number, **{**values, **more, **changes})


async def test_a_slow_listener_gets_what_fits_and_is_let_go() -> None:
    subscription = Subscription(lambda _: True, size=3)
    subscription.offer([_event(n) for n in range(5)])
    assert subscription.too_slow
    assert [[one.id for one in piece] async for piece in subscription.pieces()] == [[0, 1, 2]]


async def test_listener_takes_what_is_unread_in_pieces() -> None:
    subscription = Subscription(lambda _: True, size=1_000)
    subscription.offer([_event(n) for n in range(EVENTS_AT_ONCE + 5)])
    subscription.end()
    assert [len(piece) async for piece in subscription.pieces()] == [EVENTS_AT_ONCE, 5]


async def test_hundreds_of_listeners_are_woken_a_few_in_each_turn_of_the_loop(
    services: Services,
) -> None:
    shared, unread = Feed(services.store.database), set[Subscription]()
    async with AsyncExitStack() as stack:
        listeners = [
            await stack.enter_async_context(shared.subscribe(lambda event: event.kind == "a"))
            for _ in range(5 * WOKEN_AT_ONCE)
        ]
        deaf = await stack.enter_async_context(shared.subscribe(lambda event: event.kind == "b"))
        delivery = asyncio.create_task(shared._deliver([_event(1, kind="a")]))
        most = 0
        while not delivery.done():
            await asyncio.sleep(0)
            now = {one for one in listeners if one._unread}
            most, unread = max(most, len(now - unread)), now
        assert most == WOKEN_AT_ONCE
        assert unread == {*listeners}
        assert not deaf._unread
        late = await stack.enter_async_context(shared.subscribe(lambda _: True))
        assert not late._unread


def test_event_is_encoded_once_for_all_listeners() -> None:
    texts, encoded = SharedTexts(), list[ChangeEvent]()

    def encode(event: ChangeEvent) -> bytes:
        encoded.append(event)
        return str(event.data).encode()

    one, other = _event(7, data={"n": 1}), _event(7, data={"n": 2})  # of two databases
    for event in (one, one, other, other):
        assert texts.of(event, encode) == str(event.data).encode()
    assert encoded == [one, other]


async def test_a_slow_client_is_told_to_come_back(live: Api) -> None:
    async with stream(live.client, EVENTS) as reader:
        [subscription] = live.services.feed._subscriptions
        # More at once than a listener may have unread.
        subscription.offer([_event(n, data={"name": str(n)}) for n in range(2000)])
        assert len(await names(reader, 1000)) == 1000
        last = await reader.next(comments=True)
        assert last is not None
        assert "connect again with Last-Event-ID" in last.comment
        assert await reader.next() is None


async def test_listeners_end_when_the_feed_is_closed(services: Services) -> None:
    shared = Feed(services.store.database)
    async with shared.subscribe(lambda _: True) as subscription:
        await add(services, "a")
        pieces = subscription.pieces()
        assert [one.data for one in await anext(pieces)] == [{"name": "a"}]
        await shared.aclose()
        assert [piece async for piece in pieces] == []


async def test_a_feed_that_was_closed_can_be_listened_to_again(services: Services) -> None:
    shared = Feed(services.store.database)
    for name in ("a", "b"):
        async with shared.subscribe(lambda _: True) as subscription:
            await add(services, name)
            assert [one.data for one in await anext(subscription.pieces())] == [{"name": name}]


async def test_trouble_of_the_database_is_survived(
    services: Services, cluster: ClusterSettings
) -> None:
    shared = Feed(services.store.database, pause_after_error_s=0.01)
    async with shared.subscribe(lambda _: True) as subscription:
        with closing(sqlite3.connect(cluster.data / "shoal.db")) as connection:
            connection.execute("ALTER TABLE event RENAME TO gone")
        with capture_logs() as logged:
            async with asyncio.timeout(DEADLINE_S):
                while not any(entry["event"] == "events not read" for entry in logged):
                    await asyncio.sleep(0.01)
        with closing(sqlite3.connect(cluster.data / "shoal.db")) as connection:
            connection.execute("ALTER TABLE gone RENAME TO event")
        await add(services, "a")
        async with asyncio.timeout(DEADLINE_S):
            assert [one.data for one in await anext(subscription.pieces())] == [{"name": "a"}]
