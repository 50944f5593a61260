"""Everything that the library starts in the background, and what becomes of it if it fails.

The table names each place that starts a task, a thread or a timer. A place that is not in it has to
be classified here first, so that an unexpected error never leaves others waiting for a dead task.
"""

import ast
import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shoal.coordination
from shoal.coordination import BalancedJobs, Group, Members, Ownership, ZkSession
from shoal.coordination.group.membership import Life
from shoal.coordination.recipes.ownership import OwnerNodes, OwnershipListener
from tests.support.simulation.actors import GROUP
from tests.support.simulation.world import Process, World
from tests.support.simulation.zookeeper import SimulatedServer, simulated_sessions

LIBRARY = Path(shoal.coordination.__file__).parent

REPEATED = "a loop: it logs the error and begins again a second later, unless that is final"
ENDS = "its object ends with the error, and raises it to all that wait"
LOGGED = "work of its own that nothing waits for: the error is logged"
AWAITED = "its starter awaits it, and gets the error"
WAIT = "waits for events alone"
MECHANISM = "the mechanism itself"

STARTED: dict[tuple[str, str, str], str] = {
    ("autoscale/local_processes.py", "LocalProcesses._send_away", "start"): LOGGED,
    # Each of its steps catches every error; a second later it tries again.
    ("autoscale/scaler.py", "Autoscaler.on_elected", "start"): LOGGED,
    ("background.py", "keep_running", "create_task"): MECHANISM,
    ("background.py", "start", "create_task"): MECHANISM,
    ("cluster/cluster_clock.py", "ClusterClock.__aenter__", "keep_running"): REPEATED,
    ("cluster/membership.py", "Members.__aenter__", "keep_running"): REPEATED,
    ("cluster/membership.py", "Membership.__aenter__", "create_task"): WAIT,
    ("cluster/membership.py", "Membership.__aenter__", "start"): ENDS,
    ("cluster/membership.py", "Membership.__aexit__", "start"): LOGGED,
    ("cluster/membership.py", "Membership._delete_leftover", "create_task"): WAIT,
    ("cluster/notifications.py", "Notifications.__aenter__", "keep_running"): REPEATED,
    ("cluster/tree.py", "TreeKeeper.__aenter__", "keep_running"): REPEATED,
    ("cluster/tree.py", "TreeKeeper._until", "create_task"): WAIT,
    ("group/group.py", "Group.__aenter__", "create_task"): WAIT,
    ("group/group.py", "Group.__aenter__", "start"): ENDS,
    ("group/group.py", "Group.__aexit__", "start"): LOGGED,
    ("group/group.py", "Group._live", "create_task"): AWAITED,
    ("group/group.py", "Group._live", "start"): AWAITED,
    ("group/membership.py", "Life._guarded", "create_task"): AWAITED,
    ("group/membership.py", "Life._large_step", "create_task"): AWAITED,
    ("group/membership.py", "wait_any", "create_task"): WAIT,
    ("group/store.py", "GroupStore.change", "create_task"): AWAITED,
    ("group/store.py", "GroupStore.current", "create_task"): AWAITED,
    ("group/store.py", "compute", "call_in_own_thread"): AWAITED,
    ("messages/owned.py", "OwnedPartition.begin", "keep_running"): REPEATED,
    ("messages/producer.py", "Producer._add", "start"): LOGGED,
    ("queue/pruner.py", "Pruner._repair", "start"): LOGGED,
    ("queue/putter.py", "Putter.create_buckets", "ensure_future"): AWAITED,
    # If the claimer is cancelled, what was claimed goes back into the queue.
    ("queue/task_queue.py", "TaskQueue.claim", "create_task"): AWAITED,
    ("queue/task_queue.py", "TaskQueue.claim", "start"): LOGGED,
    ("queue/task_queue.py", "TaskQueue.wait", "create_task"): WAIT,
    # A job that fails is run again by the task itself.
    ("recipes/jobs.py", "BalancedJobs._begin", "start"): REPEATED,
    ("recipes/ownership.py", "Ownership.__aenter__", "keep_running"): REPEATED,
    # A hold that fails is logged, gives up its turn, and is begun again by the task itself.
    ("recipes/ownership.py", "Ownership._begin_holds", "start"): REPEATED,
    ("recipes/ownership.py", "Ownership._delete_leftovers", "create_task"): WAIT,
    ("recipes/ownership.py", "Ownership._end", "start"): LOGGED,
    ("recipes/ownership.py", "Ownership.abandon", "start"): AWAITED,
    ("recipes/ownership.py", "Ownership.give_up", "start"): AWAITED,
    ("recipes/ownership.py", "_wait_any", "create_task"): WAIT,
    ("session/heartbeat.py", "SessionHeartbeat.__init__", "Thread"): REPEATED,
    ("session/requests.py", "Requests.create", "ensure_future"): AWAITED,
    ("session/session.py", "ZkSession.__aenter__", "to_thread"): AWAITED,
    ("session/session.py", "ZkSession._check_proof", "call_later"): WAIT,
    ("session/session.py", "ZkSession._connected_or_over", "create_task"): WAIT,
    ("session/session.py", "ZkSession._close", "Thread"): LOGGED,
    ("session/session.py", "ZkSession._note_failed", "Thread"): LOGGED,
    # Each callback that fails is logged, and the next one is called.
    ("session/session.py", "ZkSession._post", "call_soon_threadsafe"): LOGGED,
}
STARTERS = {
    *("create_task", "ensure_future", "keep_running", "TaskGroup", "run_coroutine_threadsafe"),
    *("Thread", "call_in_own_thread", "to_thread", "run_in_executor"),
    *("call_later", "call_at", "call_soon", "call_soon_threadsafe"),
}


def starts(node: ast.AST, scope: str = "") -> Iterator[tuple[str, str]]:
    """Yield function and starter of each call that starts something."""
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{scope}.{child.name}".lstrip(".")
        match child:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="background"), attr="start")):
                yield scope, "start"
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in STARTERS:
                yield scope, name
        yield from starts(child, inner)


def test_every_start_in_the_background_is_classified() -> None:
    found = {
        (str(file.relative_to(LIBRARY)), *start)
        for file in LIBRARY.rglob("*.py")
        for start in starts(ast.parse(file.read_text("utf-8")))
    }
    assert found == STARTED.keys()


def test_work_that_nothing_awaits_is_started_by_what_logs_its_errors() -> None:
    assert {
        place
        for place, fate in STARTED.items()
        if fate in (REPEATED, ENDS, LOGGED) and place[2] in ("create_task", "ensure_future")
    } == set()


# ------------------------------------------------------------------ what the objects do


def live(test: Callable[[ZkSession, Process], Awaitable[None]]) -> list[str]:
    """Run ``test`` in a simulated process with a session; return what was logged as unexpected."""
    world = World(1)
    SimulatedServer(world)
    process = Process(world, "p")

    async def main() -> None:
        async with ZkSession("simulated:1", connect_timeout_s=1e6) as session:
            await test(session, process)

    with simulated_sessions():
        task = process.start(main(), "test")
        try:
            assert world.run_until(task.done, 300.0), "it waits for ever"
            task.result()
        finally:
            process.dispose()
    return world.problems


def fail_once(target: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Let the next call of a method fail with an error that nothing expects; count the calls."""
    original, calls = getattr(target, name), Counter[str]()

    def call(*args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        if calls[name] == 1:
            raise ZeroDivisionError(name)
        return original(*args, **kwargs)

    monkeypatch.setattr(target, name, call)
    return calls


@pytest.mark.parametrize("broken", ["_begin_holds", "_nodeless"])
def test_loops_of_an_ownership_begin_again(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(session: ZkSession, _: Process) -> None:
        acquired: list[int] = []

        async def on_acquired(_: int, epoch: int) -> None:
            acquired.append(epoch)

        async def ignore(_: Any) -> None:
            return

        nodes = OwnerNodes[int](lambda p: f"/{p}/owner", "a")
        ownership = Ownership(session, nodes, OwnershipListener(on_acquired, ignore, ignore))
        calls = fail_once(ownership, broken, monkeypatch)
        async with ownership:
            await asyncio.sleep(1.0)
            if broken == "_nodeless":
                ownership.set_wanted([7])
            await asyncio.sleep(5.0)
            ownership.set_wanted([7])
            await asyncio.sleep(5.0)
            await session.delete("/7/owner")
            await asyncio.sleep(5.0)
            assert len(acquired) == 2
            assert ownership.owned()[7] == acquired[1] > acquired[0]
        assert calls[broken] > 1

    (problem,) = live(test)
    assert "ZeroDivisionError" in problem


def test_view_of_members_is_followed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(session: ZkSession, _: Process) -> None:
        async with Members(session, "/members") as members:
            fail_once(members, "_read", monkeypatch)
            await session.create("/members/a", b"{}", ephemeral=True)
            await asyncio.sleep(20.0)
            assert members.current().keys() == {"a"}

    (problem,) = live(test)
    assert "ZeroDivisionError" in problem


def test_group_ends_with_the_error_and_raises_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(session: ZkSession, _: Process) -> None:
        group = Group(session, "g", topics={"t": 1}, settings=GROUP)
        fail_once(Life, "_call_back", monkeypatch)
        async with group:
            with pytest.raises(ZeroDivisionError):
                await group.wait()
            with pytest.raises(ZeroDivisionError):
                group.poll()
        await asyncio.sleep(5.0)
        assert (await session.children("/groups/g/members")).names == []

    assert any("ZeroDivisionError" in problem for problem in live(test))


def test_job_that_awaits_what_is_cancelled_fails_and_runs_again() -> None:
    begun: list[int] = []

    async def run(_: str, epoch: int) -> None:
        begun.append(epoch)
        if len(begun) == 1:
            other = asyncio.create_task(asyncio.sleep(60.0))
            other.cancel()
            await other
        await asyncio.get_running_loop().create_future()

    async def test(session: ZkSession, _: Process) -> None:
        async with BalancedJobs(session, "j", "a", ["job"], run, settings=GROUP) as jobs:
            await asyncio.sleep(10.0)
            assert jobs.running == {"job"}
        assert len(begun) == 2

    (problem,) = live(test)
    assert "job failed" in problem
