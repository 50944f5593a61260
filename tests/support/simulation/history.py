"""A history: processes, sessions and actors that a seed chooses, faults, then quiet.

To replay one: ``PYTHONHASHSEED=0 python -m tests.support.simulation KINDS SEED 1``.
"""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial

from shoal.coordination import ZkSession
from tests.support.simulation.actors import KINDS, Actor, Seats
from tests.support.simulation.world import Process, World
from tests.support.simulation.zookeeper import SESSION_S, SimulatedServer

FAULTS_S = 40.0  # how long things go wrong
SETTLED_S = 90.0  # within which everything has found its owner afterwards
QUIET_S = 12.0  # in which nothing changes then
LEFT_S = 60.0  # within which every actor can leave


class Host:
    """A process with its sessions, and the actors that live on them."""

    def __init__(self, history: "History", name: str, sessions: int) -> None:
        self.history = history
        self.process = Process(history.world, name)
        self.sessions: list[ZkSession] = []
        self.actors: list[Actor] = []
        self._count = sessions
        self.stop = asyncio.Event()
        self.main = self.process.start(self._live(), "main")

    async def _live(self) -> None:
        async with AsyncExitStack() as blocks:
            for number in range(self._count):
                session = ZkSession(
                    "simulated:1/app",
                    session_timeout_s=SESSION_S,
                    connect_timeout_s=1e6,
                    name=f"{self.process.name}-{number}",
                )
                await blocks.enter_async_context(session)
                self.sessions.append(session)
            await self.stop.wait()


class History:
    """What becomes of a seed. ``kinds``: which actors it may have."""

    def __init__(self, seed: int, kinds: str = "") -> None:
        self.seed = seed
        self.world = World(seed)
        self.random = self.world.random
        self.server = SimulatedServer(self.world)
        self.seats = Seats(self.world, self.server)
        self.kinds = KINDS[kinds or self.random.choice(sorted(KINDS))]
        self.hosts: list[Host] = []
        self.faults: Counter[str] = Counter()
        self._actors = 0

    def run(self) -> "History":
        try:
            self._run()
        except BaseException as error:
            error.add_note(f"History({self.seed}) at {self.world.now_s:.3f} s: {dict(self.faults)}")
            raise
        finally:
            for process in self.world.processes:
                process.dispose()
        return self

    def _run(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            self._add_host()
        for _ in range(self.random.randint(2, 9)):
            self.world.at(self.random.uniform(0, FAULTS_S), self._fault)
        for _ in range(self.random.randint(2, 5)):
            self.world.at(self.random.uniform(0, FAULTS_S / 2), self._enter)
        self._pass(FAULTS_S)
        self._calm()
        if not self.world.run_until(self._is_settled, self.world.now_s + SETTLED_S):
            raise AssertionError(f"not settled: {self._unsettled()}")
        self._check()
        self._stay_quiet()
        self._leave()

    def _pass(self, seconds: float) -> None:
        self.world.run_for(seconds)
        self._check()

    def _check(self) -> None:
        for host in self._living:
            assert not host.main.done(), f"a session has ended: {host.main}"
        assert not self.world.problems, self.world.problems[:3]

    # ------------------------------------------------------------------ what happens

    def _add_host(self) -> Host:
        host = Host(self, f"p{len(self.hosts)}", self.random.choice([1, 1, 2]))
        self.hosts.append(host)
        return host

    @property
    def _living(self) -> list[Host]:
        return [host for host in self.hosts if host.process.is_alive]

    @property
    def _present(self) -> list[Actor]:
        return [actor for host in self._living for actor in host.actors if not actor.is_over]

    def _enter(self) -> None:
        hosts = [host for host in self._living if host.sessions]
        if not hosts:
            self.world.after(1.0, self._enter)
            return
        host = self.random.choice(hosts)
        self._actors += 1
        kind = self.random.choice(self.kinds)
        actor = kind(self.world, host.process, self.random.choice(host.sessions), self.seats)
        host.actors.append(actor)
        actor.start(self._actors)

    def _fault(self) -> None:
        kind = self.random.choice(
            [
                *("break", "cut", "mute", "expire", "leave", "cancel", "change", "enter"),
                *("pause", "kill", "stop server", "remove", "overwrite", "wipe", "flap"),
            ]
        )
        if self._do(kind):
            self.faults[kind] += 1

    def _do(self, kind: str) -> bool:
        pick, uniform = self.random.choice, self.random.uniform
        clients = [c for host in self._living for c in host.process.connections]
        actors = self._present
        if kind in ("break", "cut", "mute", "expire"):
            if not clients:
                return False
            client = pick(clients)
            if kind == "break":
                client.drop_connection()
            elif kind == "cut":
                client.cut(uniform(0.5, 2 * SESSION_S))
            elif kind == "mute":
                client.mute(uniform(0.5, 2 * SESSION_S))
            else:
                self.server.expel(client._session_id or 0)
        elif kind in ("leave", "cancel", "change"):
            if not actors:
                return False
            actor = pick(actors)
            if kind == "leave":
                actor.stop.set()
            elif kind == "cancel":
                for _ in range(self.random.choice([1, 1, 2])):
                    self.world.after(uniform(0, 0.5), actor.cancel)
            else:
                self._change(actor)
        elif kind == "flap":
            for number in range(50):
                for actor in actors:
                    self.world.after(0.02 * number, partial(self._change, actor))
        elif kind == "enter":
            self._enter()
        elif kind == "pause":
            pick(self._living).process.pause(uniform(0.1, 2.5 * SESSION_S))
        elif kind == "kill":
            host = pick(self._living)
            host.process.kill()
            for actor in host.actors:
                self.seats.forget(actor)
            self._add_host()
            self.world.after(uniform(0.0, 3.0), self._enter)
        elif kind == "stop server":
            self.server.pause(uniform(0.1, 1.2 * SESSION_S))
        elif kind == "wipe":
            if self.random.random() < 0.5:
                return False
            self.server.wipe()
        else:
            paths = sorted(p for p in self.server.tree if p.startswith("/app/"))
            if not paths:
                return False
            # Mostly what sessions hold.
            held = [path for path in paths if self.server.tree[path].session_id]
            path = pick(held if held and self.random.random() < 0.8 else paths)
            if kind == "remove":
                self.server.remove(path)
            else:
                self.server.put(path, pick([b"", b"{", b"7", b'{"owner_id": "z"}']))
        return True

    def _change(self, actor: Actor) -> None:
        actor.process.loop.call_soon(lambda: actor.change() if actor.is_in else None)

    # ------------------------------------------------------------------ what must hold

    def _calm(self) -> None:
        """End every fault: from now on only sessions end whose time is over."""
        self.world.is_calm = True
        self.server.resume_now()
        for host in self._living:
            host.process.resume_now()
            for client in host.process.connections:
                client.mend()
        if not self._present:
            self._enter()

    def _unsettled(self) -> list[str]:
        found = [
            f"{host.process.name} is not connected"
            for host in self._living
            if not all(client.is_connected for client in host.process.connections)
        ]
        wanted: dict[str, list[Actor]] = {}
        for actor in self._present:
            if not actor.process.is_running:
                found.append(f"{actor} is paused")
            elif not actor.is_in and not actor.enters_when_free():
                found.append(f"{actor} is not in")
            if not actor.is_served():
                found.append(f"{actor} is not served")
            for seat in actor.wants():
                wanted.setdefault(seat, []).append(actor)
        for seat, actors in sorted(wanted.items()):
            holders = self.seats.holders(seat)
            if len(holders) != 1 or holders[0] not in actors:
                found.append(f"{seat} is with {[*map(str, holders)]} of {[*map(str, actors)]}")
        wanted_seats = wanted.keys()
        for seat, held in self.seats.held.items():
            if held and seat not in wanted_seats:
                found.append(f"{seat} is with {held[0].actor}, which does not want it")
        return found

    def _is_settled(self) -> bool:
        return not self._unsettled()

    def _stay_quiet(self) -> None:
        """Without a change nothing changes hands or is written, and little is read."""
        actors = len(self._present)
        self._pass(QUIET_S)  # others may still be reading what has just settled
        self.server.requests.clear()
        changes = self.seats.changes
        self._pass(QUIET_S)
        requests = self.server.requests
        assert self.seats.changes == changes, "something changed hands for no reason"
        writes = {
            name: n for name, n in requests.items() if name not in ("exists", "get", "children")
        }
        assert not writes, f"written without a change: {writes}"
        most = (1 + QUIET_S / 5.0) * 4 * (actors + 1)
        assert requests.total() <= most, f"{actors} actors: {requests}"
        watched = [
            p for h in self._living for client in h.process.connections for p in client.watched
        ]
        assert len(watched) <= 5 * (actors + 1), f"watched by {actors} actors: {sorted(watched)}"
        for host in self._living:
            most_tasks = 2 + 14 * sum(not actor.is_over for actor in host.actors)
            names = sorted(task.get_name() for task in host.process.tasks())
            assert len(names) <= most_tasks, f"{len(names)} tasks: {names}"

    def _leave(self) -> None:
        """Every actor leaves, and leaves nothing behind."""
        actors = self._present
        for actor in actors:
            actor.stop.set()
        limit_s = self.world.now_s + LEFT_S
        if not self.world.run_until(lambda: all(a.is_over for a in actors), limit_s):
            raise AssertionError(f"cannot leave: {[str(a) for a in actors if not a.is_over]}")
        self._pass(1.0)
        left = [s for s, held in self.seats.held.items() if held]
        assert not left, f"seats held after leaving: {left}"
        nodes = [path for path, node in self.server.tree.items() if node.session_id]
        assert not nodes, f"nodes left behind: {nodes}"
        for host in self._living:
            names = sorted(t.get_name() for t in host.process.tasks() if t is not host.main)
            assert not names, f"tasks left behind: {names}"
