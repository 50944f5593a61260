"""Actors of the coordination library, and the seats that they hold one at a time.

A seat is what only one actor may have: a leadership, a partition, a job. An actor takes it when the
library says so and leaves it when the library's last call about it has ended. ``Seats`` checks that
each is taken by one at a time and that its epochs grow.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.coordination import (
    BalancedJobs,
    Election,
    ElectionListener,
    FairShare,
    Group,
    GroupListener,
    GroupSettings,
    Membership,
    OwnerNodes,
    Ownership,
    OwnershipListener,
    Partition,
    ZkSession,
)
from shoal.coordination.cluster.own_clock import OwnClock
from shoal.core.timing.cluster_time import ClockReading
from tests.support.simulation.world import WALL_S, Process, Refusal, World
from tests.support.simulation.zookeeper import SESSION_S, SimulatedServer

LOSS_S = 0.5  # the longest an actor takes to stop; it has 0.3 of the session timeout
WAKING_S = 1.0 + LOSS_S  # in which a process that was paused finds out
NOTICE_S = 3.0 + LOSS_S  # in which an owner notices that its node is gone
GROUP = GroupSettings(initial_rebalance_delay_s=0.5, rebalance_timeout_s=8.0)


@dataclass(frozen=True)
class Held:
    actor: "Actor"
    epoch: tuple[int, int] | None  # the era of the server's data, and the node's czxid
    since_s: float


class Seats:
    """Who has which seat, and every epoch so far."""

    def __init__(self, world: World, server: SimulatedServer) -> None:
        self._world, self._server = world, server
        self.held: dict[str, list[Held]] = {}
        self._newest: dict[str, tuple[int, int]] = {}
        self.changes = 0

    def take(self, seat: str, actor: "Actor", epoch: int | None, path: str = "") -> None:
        self.changes += 1
        dated = None
        if epoch is not None:
            # Of equal numbers in two eras, the later one: the earlier is refused below.
            found = [one for one in self._server.made.get(f"/app{path}", []) if one[1] == epoch]
            assert found, f"{actor} has {seat} with epoch {epoch}, of no node"
            dated = found[-1]
            newest = self._newest.get(seat, (-1, 0))
            assert dated > newest, f"{actor} has {seat} with epoch {dated} after {newest}"
            self._newest[seat] = dated
        holders = self.held.setdefault(seat, [])
        for other in holders:
            assert other.actor is not actor, f"{actor} is given {seat} twice"
            assert self._is_excused(other), (
                f"{seat} at {self._world.now_s:.3f}: {actor} takes it, {other.actor} has it "
                f"since {other.since_s:.3f}"
            )
        holders.append(Held(actor, dated, self._world.now_s))

    def _is_excused(self, other: Held) -> bool:
        """Whether an owner cannot know yet that it is none: paused, or its node was deleted."""
        now_s, process = self._world.now_s, other.actor.process
        if not process.is_running or now_s - process.ran_again_at_s <= WAKING_S:
            return True
        since_s = max(process.ran_again_at_s, self._disturbed_s(other))
        return now_s - since_s <= NOTICE_S

    def _disturbed_s(self, held: Held) -> float:
        if held.epoch is None or held.epoch[0] != self._server.era:
            return self._server.disturbed_s + SESSION_S
        return self._server.removed_s.get(held.epoch, float("-inf"))

    def leave(self, seat: str, actor: "Actor") -> None:
        self.held[seat] = [one for one in self.held.get(seat, []) if one.actor is not actor]

    def forget(self, actor: "Actor") -> None:
        """The actor's process was killed."""
        for seat in self.held:
            self.leave(seat, actor)

    def of(self, actor: "Actor") -> set[str]:
        return {s for s, held in self.held.items() if any(one.actor is actor for one in held)}

    def holders(self, seat: str) -> "list[Actor]":
        return [one.actor for one in self.held.get(seat, [])]


class Actor:
    """One of the library's objects for a while, in a process, by a session."""

    def __init__(self, world: World, process: Process, session: ZkSession, seats: Seats) -> None:
        self.world, self.process, self.session, self.seats = world, process, session, seats
        self.is_in = False  # it has entered
        self.stop = asyncio.Event()
        self.task: asyncio.Task[Any]
        self.name = ""

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.name} of {self.process.name}"

    def start(self, number: int) -> None:
        self.name = f"a{number}"
        self.choose()
        self.task = self.process.start(self._live(), str(self))

    async def _live(self) -> None:
        try:
            async with self.make():
                self.is_in = True
                await self.stop.wait()
                self.is_in = False
        except Exception as error:  # noqa: BLE001 - none is expected
            self.world.problems.append(f"{self} ended with {error!r}")
        finally:
            self.is_in = False

    def cancel(self) -> None:
        """Cancel what it is waiting for, wherever that is."""
        self.task.cancel()

    @property
    def is_over(self) -> bool:
        return self.task.done()

    def choose(self) -> None:
        """Choose what it is to be."""

    def is_served(self) -> bool:
        """Whether it has what it is for, besides its seats."""
        return True

    def make(self) -> Any:
        """Return the block to enter."""
        raise NotImplementedError

    def wants(self) -> set[str]:
        """The seats that it would take."""
        return set()

    def enters_when_free(self) -> bool:
        """Whether it waits at its door while another actor has the same name."""
        return False

    def change(self) -> None:
        """Want something else. Called in its process."""

    # ------------------------------------------------------------------ as a listener

    async def take(self, seat: str, epoch: int | None, path: str) -> None:
        self.seats.take(seat, self, epoch, path)
        try:
            await self.dawdle(0.3)
            if not self.world.is_calm and self.world.random.random() < 0.1:
                raise Refusal("this actor cannot begin")
        except Exception:
            self.seats.leave(seat, self)
            raise

    async def leave(self, *seats: str) -> None:
        await self.dawdle(LOSS_S)
        for seat in seats:
            self.seats.leave(seat, self)

    async def dawdle(self, longest_s: float) -> None:
        if self.world.random.random() < 0.5:
            await asyncio.sleep(self.world.random.uniform(0, longest_s))


class Candidate(Actor, ElectionListener):
    """Stands for one of two elections."""

    def choose(self) -> None:
        self.which = self.world.random.choice("eef")
        self.seat, self.path = f"election {self.which}", f"/elections/{self.which}/leader"

    def make(self) -> Election:
        self.election = Election(
            self.session, self.which, self.world.random.choice([self.name, "x"]), self
        )
        return self.election

    def wants(self) -> set[str]:
        return {self.seat}

    async def on_elected(self, epoch: int) -> None:
        await self.take(self.seat, epoch, self.path)
        self.election.fence  # noqa: B018 - raises unless it leads

    async def on_deposed(self) -> None:
        await self.leave(self.seat)

    async def on_lost(self) -> None:
        assert self.election.epoch is None
        await self.leave(self.seat)


class Owner(Actor):
    """Wants some of three partitions, and other ones later."""

    def choose(self) -> None:
        self.wanted = {p for p in range(3) if self.world.random.random() < 0.6}

    def make(self) -> Ownership:
        self.ownership = Ownership(
            self.session,
            OwnerNodes(lambda p: f"/owned/{p}/owner", self.world.random.choice([self.name, "x"])),
            OwnershipListener(self._acquired, self._released, self._lost),
            takeover_delay_s=self.world.random.choice([0.0, 0.0, 2.0]),
        )
        self.ownership.set_wanted(self.wanted)
        return self.ownership

    def change(self) -> None:
        self.choose()
        self.ownership.set_wanted(self.wanted)

    def wants(self) -> set[str]:
        return {f"partition {p}" for p in self.wanted}

    async def _acquired(self, partition: int, epoch: int) -> None:
        await self.take(f"partition {partition}", epoch, f"/owned/{partition}/owner")

    async def _released(self, partition: int) -> None:
        await self.leave(f"partition {partition}")

    async def _lost(self, partitions: frozenset[int]) -> None:
        assert not partitions & self.ownership.owned().keys()
        await self.leave(*(f"partition {p}" for p in partitions))


class Sharer(Actor):
    """Takes its share of three partitions."""

    every = {f"share {p}" for p in range(3)}

    def make(self) -> FairShare:
        return FairShare(
            self.session,
            "shared",
            {"t": 3},
            OwnerNodes(lambda p: f"/shared/{p.index}/owner", self.name),
            OwnershipListener(self._acquired, self._released, self._lost),
            settings=GROUP,
        )

    def wants(self) -> set[str]:
        return self.every

    async def _acquired(self, p: Partition, epoch: int) -> None:
        await self.take(f"share {p.index}", epoch, f"/shared/{p.index}/owner")

    async def _released(self, p: Partition) -> None:
        await self.leave(f"share {p.index}")

    async def _lost(self, partitions: frozenset[Partition]) -> None:
        await self.leave(*(f"share {p.index}" for p in partitions))


class Runner(Actor):
    """Runs its share of two jobs."""

    jobs = ("nightly", "billing")

    def make(self) -> BalancedJobs:
        return BalancedJobs(self.session, "j", self.name, self.jobs, self._run, settings=GROUP)

    def wants(self) -> set[str]:
        return {f"job {job}" for job in self.jobs}

    async def _run(self, job: str, epoch: int) -> None:
        if (f"job {job}") in self.seats.of(self):
            raise AssertionError(f"{self} runs {job} twice")
        self.seats.take(f"job {job}", self, epoch, f"/jobs/j/{job}/owner")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            try:
                await self.dawdle(LOSS_S)
            finally:  # at once if it is cancelled again: ours no longer, while it was to move
                self.seats.leave(f"job {job}", self)


class GroupMember(Actor, GroupListener):
    """Takes part in a group, under an instance id perhaps."""

    def make(self) -> Group:
        instance_id = self.name if self.world.random.random() < 0.4 else None
        return Group(
            self.session,
            "g",
            topics={"t": 3},
            listener=self,
            settings=GroupSettings(
                initial_rebalance_delay_s=0.5, rebalance_timeout_s=8.0, instance_id=instance_id
            ),
        )

    def wants(self) -> set[str]:
        return {f"assigned {p}" for p in range(3)}

    async def on_assigned(self, partitions: frozenset[Partition]) -> None:
        for p in partitions:
            self.seats.take(f"assigned {p.index}", self, None)
        await self.dawdle(0.3)

    async def on_revoked(self, partitions: frozenset[Partition]) -> None:
        await self.leave(*(f"assigned {p.index}" for p in partitions))

    async def on_lost(self, partitions: frozenset[Partition]) -> None:
        await self.leave(*(f"assigned {p.index}" for p in partitions))


class Registered(Actor):
    """A member below a path, with an id that another one may have."""

    def choose(self) -> None:
        self.id = self.world.random.choice("mmn")

    def make(self) -> Membership:
        self.membership = Membership(
            self.session, "/people", self.id, {"of": self.name}, clock=OwnClock(self._clocks)
        )
        return self.membership

    def enters_when_free(self) -> bool:
        return True

    def is_served(self) -> bool:
        node = self.world.server.tree.get(f"/app/people/{self.id}")
        return node is not None and (not self.is_in or node.czxid == self.membership.epoch)

    def _clocks(self) -> ClockReading:
        return ClockReading(WALL_S + self.world.now_s, self.world.now_s)

    def change(self) -> None:
        self.process.start(self.membership.update({"of": self.name, "at": self.world.now_s}), "up")


KINDS: Mapping[str, tuple[Callable[..., Actor], ...]] = {
    "seats": (Candidate, Owner),
    "shares": (Sharer, Runner, GroupMember),
    "all": (Candidate, Owner, Sharer, Runner, GroupMember),
}
