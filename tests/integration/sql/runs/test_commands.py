"""Commands: accepted once, handled once."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from shoal.core.runs.commands import Command, CommandState, CommandType, NewCommand, Parent
from shoal.sql import Database
from shoal.sql.errors import BrokenReference, InvalidValue, KeyTaken, NotFound, StaleRow
from shoal.sql.repositories.runs.commands import own_key
from tests.integration.sql.given import LATER, NOW, accepted, published, start


async def test_command_is_stored_with_everything_it_says(database: Database) -> None:
    workflow_id = await published(database)
    new = NewCommand(
        type=CommandType.RERUN,
        partition=3,
        idempotency_key="rerun:7",
        workflow_id=workflow_id,
        instance_id=7,
        version=2,
        parameters={"day": "2026-02-28", "name": "Zoë"},
        logical_time=LATER,
        timezone="Asia/Kathmandu",
        priority=0,
        schedule_id=12,
        requested_by="ana",
    )
    async with database.unit_of_work() as uow:
        command, created = await uow.commands.add(new, NOW)
        await uow.commit()
    assert created
    assert command == Command(**vars(new), id=command.id, created_at=NOW)
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.commands.get(command.id) == command


async def test_same_key_is_the_same_command(database: Database) -> None:
    workflow_id = await published(database)
    async with database.unit_of_work() as uow:
        first, created_first = await uow.commands.add(start(workflow_id, "once"), NOW)
        again, created_again = await uow.commands.add(start(workflow_id, "once"), LATER)
        await uow.commit()
    assert (created_first, created_again) == (True, False)
    assert again == first


async def test_eight_concurrent_requests_with_one_key_make_one_command(database: Database) -> None:
    workflow_id = await published(database)
    barrier = asyncio.Barrier(8)

    async def request() -> tuple[Command, bool]:
        await barrier.wait()
        async with database.unit_of_work() as uow:
            outcome = await uow.commands.add(start(workflow_id, "the key"), NOW)
            await uow.commit()
        return outcome

    outcomes = await asyncio.gather(*(request() for _ in range(8)))
    assert len({command.id for command, _ in outcomes}) == 1
    assert sorted(created for _, created in outcomes) == [False] * 7 + [True]


async def test_request_that_was_rolled_back_leaves_the_key_free(database: Database) -> None:
    workflow_id = await published(database)
    async with database.unit_of_work() as uow:
        await uow.commands.add(start(workflow_id, "k"), NOW)
    async with database.unit_of_work() as uow:
        _, created = await uow.commands.add(start(workflow_id, "k"), NOW)
        await uow.commit()
    assert created


async def test_many_commands_keep_their_order_and_repeat_known_ones(database: Database) -> None:
    workflow_id = await published(database)
    (known,) = await accepted(database, start(workflow_id, "b"))
    async with database.unit_of_work() as uow:
        outcomes = await uow.commands.add_many(
            [start(workflow_id, key) for key in ("a", "b", "c", "a")], NOW
        )
        await uow.commit()
    commands, created = zip(*outcomes, strict=True)
    assert created == (True, False, True, False)
    assert [command.idempotency_key for command in commands] == ["a", "b", "c", "a"]
    assert commands[1] == known
    assert commands[0].id < commands[2].id
    assert commands[3] == commands[0]


async def test_pending_is_in_order_and_of_the_asked_partitions_only(database: Database) -> None:
    workflow_id = await published(database)
    commands = await accepted(
        database, *(start(workflow_id, partition=p) for p in (2, 0, 1, 2, 0, 5))
    )
    async with database.unit_of_work() as uow:
        await uow.commands.done(commands[1].id, 99, NOW)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        pending = await uow.commands.starts({0, 2}, 10)
        assert pending == [commands[0], commands[3], commands[4]]
        assert await uow.commands.starts({0, 2}, 2) == pending[:2]
        assert await uow.commands.starts([], 10) == []
        assert await uow.commands.backlog() == {0: 1, 1: 1, 2: 2, 5: 1}
        assert await uow.commands.backlog({1, 3}) == {1: 1}


async def test_what_a_sub_workflow_waits_for_is_no_start_that_could_be_held_back(
    database: Database,
) -> None:
    workflow_id = await published(database)
    parent = Parent(instance_id=1, task_instance_id=2, partition=0)
    of_parent, by_hand, rerun, stop = await accepted(
        database,
        start(workflow_id, parent=parent),
        start(workflow_id),
        NewCommand(CommandType.RERUN, 0, "again", workflow_id, instance_id=1),
        NewCommand(CommandType.STOP, 0, "stop", workflow_id, instance_id=1),
    )
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.commands.starts([0], 10) == [by_hand, rerun]
        assert await uow.commands.requests([0], 10) == [of_parent, stop]


async def test_outcome_is_written_once(database: Database) -> None:
    workflow_id = await published(database)
    carried_out, refused = await accepted(database, start(workflow_id), start(workflow_id))
    async with database.unit_of_work() as uow:
        await uow.commands.done(carried_out.id, 42, LATER)
        await uow.commands.refuse(refused.id, "no such version", LATER)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.commands.get(carried_out.id) == replace(
            carried_out, state=CommandState.DONE, result_instance_id=42, handled_at=LATER
        )
        assert await uow.commands.get(refused.id) == replace(
            refused, state=CommandState.REFUSED, reason="no such version", handled_at=LATER
        )
    for command in (carried_out, refused):
        async with database.unit_of_work() as uow:
            with pytest.raises(StaleRow) as caught:
                await uow.commands.done(command.id, 43, LATER)
            assert caught.value.ids == {command.id}


async def test_batch_with_a_handled_command_names_it_and_writes_nothing(
    database: Database,
) -> None:
    workflow_id = await published(database)
    one, two, three = await accepted(database, *(start(workflow_id) for _ in range(3)))
    async with database.unit_of_work() as uow:
        await uow.commands.refuse_many([(two.id, "first")], NOW)
        await uow.commit()
    async with database.unit_of_work() as uow:
        with pytest.raises(StaleRow) as caught:
            await uow.commands.done_many([(c.id, 1) for c in (one, two, three)], NOW)
    assert caught.value.ids == {two.id}
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.commands.starts([0], 10) == [one, three]


async def test_two_masters_cannot_both_handle_a_command(database: Database) -> None:
    workflow_id = await published(database)
    (command,) = await accepted(database, start(workflow_id))

    async def handle(instance_id: int) -> bool:
        async with database.unit_of_work() as uow:
            try:
                await uow.commands.done(command.id, instance_id, NOW)
            except StaleRow:
                return False
            await uow.commit()
        return True

    assert sorted(await asyncio.gather(*(handle(i) for i in range(6)))) == [False] * 5 + [True]


async def test_command_for_an_unknown_workflow_is_refused(database: Database) -> None:
    async with database.unit_of_work() as uow:
        with pytest.raises(BrokenReference):
            await uow.commands.add(start(12345), NOW)


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_key_must_have_a_length_that_can_be_stored(database: Database, key: str) -> None:
    async with database.unit_of_work() as uow:
        with pytest.raises(InvalidValue, match="1 to 255"):
            await uow.commands.add(replace(start(1), idempotency_key=key), NOW)


async def test_unknown_command_is_not_found(database: Database) -> None:
    async with database.unit_of_work(read_only=True) as uow:
        with pytest.raises(NotFound, match="command 77"):
            await uow.commands.get(77)


async def test_callers_keys_and_those_of_shoal_never_meet(database: Database) -> None:
    workflow_id = await published(database)
    own, callers = start(workflow_id, "k", schedule_id=3), start(workflow_id, "k")
    async with database.unit_of_work() as uow:
        (theirs, is_new), (sent,) = (
            await uow.commands.add(callers, NOW),
            await uow.commands.send_many([own], NOW),
        )
        assert is_new
        assert theirs.id != sent.id
        assert await uow.commands.with_key("k") == theirs
        assert await uow.commands.sent(["k", "other"]) == {"k": sent}
        assert await uow.commands.get(sent.id) == sent
        await uow.commit()


async def test_own_command_that_is_sent_again_is_the_same(database: Database) -> None:
    workflow_id = await published(database)
    new = start(workflow_id, "k", schedule_id=3, logical_time=NOW, parameters={"a": "1"})
    async with database.unit_of_work() as uow:
        [first] = await uow.commands.send_many([new], NOW)
        again = replace(new, parameters={"a": "2"})  # published anew meanwhile
        assert await uow.commands.send_many([again], LATER) == [first]


@pytest.mark.parametrize(
    "other",
    [{"schedule_id": 4}, {"backfill_id": 1}, {"instance_id": 1}, {"logical_time": LATER}],
    ids=["schedule", "backfill", "instance", "time"],
)
async def test_own_command_whose_key_another_one_has_is_not_taken_for_sent(
    database: Database, other: dict[str, Any]
) -> None:
    workflow_id = await published(database)
    new = start(workflow_id, "k", schedule_id=3, logical_time=NOW)
    async with database.unit_of_work() as uow:
        await uow.commands.send_many([replace(new, **other)], NOW)
        with pytest.raises(KeyTaken, match="the key 'k' belongs to command 1"):
            await uow.commands.send_many([new], NOW)


async def test_caller_cannot_write_a_key_of_shoal(database: Database) -> None:
    with pytest.raises(InvalidValue, match="control characters"):
        async with database.unit_of_work() as uow:
            await uow.commands.add(start(1, own_key("k")), NOW)


async def test_keys_of_callers_do_not_meet(database: Database) -> None:
    workflow = await published(database)
    asked = [start(workflow, "k", caller_id=caller) for caller in (None, 1, 2, 11)]
    async with database.unit_of_work() as uow:
        first = await uow.commands.add_many(asked, NOW)
        await uow.commit()
    async with database.unit_of_work() as uow:
        again = await uow.commands.add_many(asked, NOW)
        found = [await uow.commands.with_key("k", one.caller_id) for one in asked]
        assert await uow.commands.with_key("k", 3) is None
        with pytest.raises(InvalidValue):
            await uow.commands.add(start(workflow, "\x1e1\x1ek"), NOW)
    assert len({command.id for command, is_new in first if is_new}) == 4
    assert again == [(command, False) for command, _ in first]
    assert found == [command for command, _ in first]
    assert {command.idempotency_key for command in found if command} == {"k"}
