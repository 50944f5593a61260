"""Somebody writes junk into the tree under a working master and a working worker: neither ends,
work goes on, and what was hurt is whole again by itself."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from shoal.coordination import Members, Mismatch, Owners, ZkSession, quarantine, read_group, znodes
from shoal.coordination.cluster import layout
from shoal.coordination.errors import NodeExists, NoNode, PathError
from shoal.coordination.group import GroupState
from shoal.core.runs.states import WorkflowState
from shoal.worker.main import run_worker
from shoal.worker.settings import WorkerSettings
from tests.integration.coordination.conftest import connect
from tests.integration.master.conftest import PARTITIONS, Bench
from tests.support.waiting import DEADLINE_S
from tests.support.zookeeper.server import delete_all

GROUP = layout.MASTERS_GROUP

SEEDS = (1, 2, 3)
ROUNDS = 6
PIECES = 25  # of junk in a round
HUGE = 1_000_000  # bytes; the server takes no more than 1 MiB

Junk = Callable[[random.Random, bytes], bytes]


# The database has no part in it.
pytestmark = pytest.mark.parametrize("bench", ["sqlite"], indirect=True)


@asynccontextmanager
async def working(
    bench: Bench, sweep_interval_s: float = 0.5
) -> AsyncIterator[list["asyncio.Task[None]"]]:
    """A master, a worker, and a reader like an API; none may end before the block.

    ``sweep_interval_s``: of the master.
    """
    stop = asyncio.Event()
    async with (
        Members(bench.session, layout.MASTERS),
        bench.master(sweep_interval_s=sweep_interval_s) as master,
    ):
        settings = WorkerSettings(name="w", slots=4)
        worker = asyncio.create_task(run_worker(settings, bench.cluster, stop, asyncio.Event()))
        try:
            await whole(bench, [master, worker])
            yield [master, worker]
            for role in (master, worker):
                if role.done():
                    role.result()
                assert not role.done()
        finally:
            stop.set()
            await asyncio.gather(worker, return_exceptions=True)


async def whole(bench: Bench, roles: list["asyncio.Task[None]"]) -> None:
    """Return when everybody is registered, and every partition has an owner."""
    session, problem = bench.session, ""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while problem := await _problem(session):
                for role in roles:
                    if role.done():
                        role.result()
                    assert not role.done()
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"not whole: {problem}") from None


async def _problem(session: ZkSession) -> str:
    try:
        if (group := await read_group(session, GROUP)).state is not GroupState.STABLE:
            return f"the group is {group.state}"
        registered = (await session.children(znodes.group_members(GROUP))).names
        if set(map(znodes.decode_name, registered)) != group.members.keys():
            return f"{registered} are registered"
        for place in (layout.MASTERS, layout.WORKERS):
            members = [await session.get(f"{place}/{name}") for name in await names(session, place)]
            if len(members) != 1 or not all(m.stat.session_id for m in members):
                return f"{len(members)} nodes in {place}"
            if "address" not in json.loads(members[0].data):
                return f"no address in {place}"
        if (owners := len(await Owners(session).all_owners(PARTITIONS))) != PARTITIONS:
            return f"{owners} owners"
        if set(await names(session, layout.CLAIMS)) != layout.claim_names():
            return "claims"
        config = layout.read_config((await session.get(layout.CONFIG)).data)
        if config is None or config.partitions != PARTITIONS:
            return "config"
    except (Mismatch, NoNode, ValueError, TypeError, RecursionError) as error:
        return repr(error)
    return ""


async def names(session: ZkSession, path: str) -> list[str]:
    with suppress(NoNode):
        return (await session.children(path)).names
    return []


async def run(bench: Bench, workflow: int, key: str) -> None:
    instance = await bench.start(workflow, key)
    assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED


# ---------------------------------------------------------------------- junk


def noise(rng: random.Random, _: bytes) -> bytes:
    return rng.randbytes(rng.choice((1, 7, 100, 5000)))


def nothing(_: random.Random, __: bytes) -> bytes:
    return b""


def huge(rng: random.Random, _: bytes) -> bytes:
    return rng.choice((b"[", b"\xff", b'{"a":', b" ", b"9")) * (HUGE // 8)


def deep(_: random.Random, __: bytes) -> bytes:
    return b'{"members": ' * 20_000


EXTREMES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**40,
    1e308,
    float("nan"),
    "",
    "x" * 1000,
    "../..",
    "\x00",
    [],
    {},
    [[]],
    {"a": 1},
    ["m"] * 50,
)


def wrong_shape(rng: random.Random, _: bytes) -> bytes:
    return json.dumps(rng.choice(EXTREMES)).encode()


def nearly_right(rng: random.Random, data: bytes) -> bytes:
    """Return the document with one value changed into another."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return noise(rng, data)
    for _ in range(rng.choice((1, 1, 2))):
        value = _changed(rng, value)
    return json.dumps(value).encode()


def _changed(rng: random.Random, value: Any) -> Any:
    places = list(value) if isinstance(value, dict) else range(len(value)) if _many(value) else ()
    if not places or rng.random() < 0.2:
        return rng.choice(EXTREMES)
    place = rng.choice(list(places))
    changed = value.copy()
    if rng.random() < 0.1 and isinstance(value, dict):
        del changed[place]
    else:
        changed[place] = _changed(rng, value[place])
    return changed


def _many(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def other_state(rng: random.Random, data: bytes) -> bytes:
    """Return a well-formed group that no coordinator has written."""
    try:
        group = json.loads(data)
        group["state"] = rng.choice(list(GroupState)).value
        group["leader"] = rng.choice((None, "nobody", group["leader"]))
        group["assignor"] = rng.choice(("", "junk", group["assignor"]))
        group["deadline_s"] = rng.choice((None, 0, 9e15, 4e9, group["deadline_s"]))
        if rng.random() < 0.5 and group["members"]:
            ghost = {**group["members"][0], "id": "ghost", "assignors": ["junk"]}
            group["members"].append(ghost | {"topics": {"partitions": rng.choice((1, 10**9))}})
    except (ValueError, KeyError, TypeError, RecursionError):
        return wrong_shape(rng, data)
    return json.dumps(group).encode()


JUNK: tuple[Junk, ...] = (
    noise,
    noise,
    nothing,
    huge,
    deep,
    wrong_shape,
    wrong_shape,
    nearly_right,
    nearly_right,
)
NAMES = (
    "junk",
    "-1",
    "999",
    "9" * 300,
    "1_0",
    "%2F",
    "a b",
    "ü",
    "0" * 16,
    "!",
    "00000000000001-p00٣",
)


async def vandalise(session: ZkSession, rng: random.Random) -> None:
    """Write one piece of junk somewhere: into what is there, or beside it."""
    overwritten = [
        layout.CONFIG,
        znodes.group(GROUP),
        znodes.group(GROUP),
        znodes.group_members(GROUP),
        layout.owner(rng.randrange(PARTITIONS)),
        layout.notification(rng.randrange(PARTITIONS)),
        layout.partition(rng.randrange(PARTITIONS)),
        layout.queue("default"),
        layout.claim_bucket(rng.randrange(256)),
        *[f"{p}/{n}" for p in (layout.MASTERS, layout.WORKERS) for n in await names(session, p)],
        *[
            f"{znodes.group_members(GROUP)}/{n}"
            for n in await names(session, znodes.group_members(GROUP))
        ],
        znodes.QUARANTINE,
    ]
    beside = [
        layout.MASTERS,
        layout.WORKERS,
        layout.PARTITIONS,
        layout.partition(0),
        layout.QUEUE,
        layout.queue("default"),
        f"{layout.queue('default')}/2-000000000",
        f"{layout.queue('default')}/0-000000000/000000000001-0-00000000000",
        layout.CLAIMS,
        layout.claim_bucket(7),
        layout.claimers("default"),
        znodes.group_members(GROUP),
        znodes.GROUPS,
        znodes.QUARANTINE,
    ]
    with suppress(PathError):
        if rng.random() < 0.6:
            path = rng.choice(overwritten)
            data = (await session.get(path)).data
            kinds = (*JUNK, other_state, other_state) if path == znodes.group(GROUP) else JUNK
            await session.set(path, rng.choice(kinds)(rng, data))
        else:
            path = f"{rng.choice(beside)}/{rng.choice(NAMES)}"
            with suppress(NodeExists):
                await session.create(path, rng.choice(JUNK)(rng, b"{}"), makepath=True)
            if rng.random() < 0.3:
                await session.create(f"{path}/below")


@pytest.mark.parametrize("seed", SEEDS)
async def test_junk_anywhere_ends_nothing_and_work_goes_on(bench: Bench, seed: int) -> None:
    rng = random.Random(seed)
    workflow = await bench.publish({"a": {}, "b": {"depends_on": ["a"]}})
    async with working(bench) as roles, connect(bench.cluster.zookeeper, name="vandal") as vandal:
        for number in range(ROUNDS):
            for _ in range(PIECES):
                await vandalise(vandal, rng)
            await run(bench, workflow, f"{seed}-{number}")
            await whole(bench, roles)
        records = await quarantine.records(bench.session)
        assert 0 < len(records) <= quarantine.MOST
        assert all(record.reason and record.path for record in records)


async def test_twelve_bytes_in_the_masters_group_stop_nobody(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}})
    async with working(bench) as roles:
        before = (await read_group(bench.session, GROUP)).generation
        await bench.session.set(znodes.group(GROUP), b"\xff\x00 not json")
        await whole(bench, roles)
        await run(bench, workflow, "after")
        assert (await read_group(bench.session, GROUP)).generation > before
        async with asyncio.timeout(DEADLINE_S):
            while not (records := await quarantine.records(bench.session)):
                await asyncio.sleep(0.02)  # the repair comes first, then the record
        (record,) = records
        assert record.path == znodes.group(GROUP)
        assert record.data == b"\xff\x00 not json"


async def test_all_owner_nodes_deleted_are_taken_again(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}})
    async with working(bench) as roles:
        for number in range(PARTITIONS):
            await bench.session.delete(layout.owner(number))
        await whole(bench, roles)
        for number in range(10):
            await run(bench, workflow, f"after-{number}")


async def test_a_tree_that_is_deleted_under_them_is_made_anew(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}, "b": {"depends_on": ["a"]}})
    async with working(bench) as roles:
        await run(bench, workflow, "before")
        await asyncio.to_thread(delete_all, bench.cluster.zookeeper)
        await whole(bench, roles)
        for number in range(5):
            await run(bench, workflow, f"after-{number}")


async def test_many_foreign_names_do_not_hide_the_entries_behind_them(bench: Bench) -> None:
    workflow = await bench.publish({"a": {}})
    # That of the run below: its first task is among them.
    bucket = f"{layout.queue('default')}/2-000000000/000000000001-2-00000000000"
    async with working(bench, sweep_interval_s=60.0):  # the claimer removes them by itself
        await bench.session.ensure(bucket)
        creates = (bench.session.create(f"{bucket}/!{number}") for number in range(600))
        await asyncio.gather(*creates, return_exceptions=True)  # it may be pruned meanwhile
        await run(bench, workflow, "behind")
        async with asyncio.timeout(DEADLINE_S):
            while await names(bench.session, bucket):
                await asyncio.sleep(0.05)
