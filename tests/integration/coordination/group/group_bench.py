"""Members of groups for the tests, and a ledger of who holds what."""

from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from shoal.coordination import Group, GroupListener, GroupSettings, Partition, ZkSession
from tests.integration.coordination.conftest import connect
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S, eventually

# Quick to begin and to notice; patient with a machine that is busy with something else.
QUICK = GroupSettings(rebalance_timeout_s=60.0, initial_rebalance_delay_s=0.05, reread_s=1.0)
PATIENCE_S = DEADLINE_S

Hook = Callable[[frozenset[Partition]], Awaitable[None]]


def jobs(*numbers: int) -> frozenset[Partition]:
    return frozenset(Partition("jobs", number) for number in numbers)


class Ledger:
    """Who holds which partition, as the listeners are told; and what must never happen."""

    def __init__(self) -> None:
        self.holders: dict[Partition, str] = {}
        self.told: list[tuple[str, str, frozenset[Partition]]] = []  # member, call, partitions
        self.shared: list[str] = []  # partitions that two members held at once
        self.wrong: list[str] = []  # calls that make no sense

    def of(self, name: str) -> list[tuple[str, frozenset[Partition]]]:
        return [(call, partitions) for member, call, partitions in self.told if member == name]

    def calls(self) -> list[tuple[str, str]]:
        return [(member, call) for member, call, _ in self.told]

    def moved(self, since: int = 0) -> int:
        """Partitions that were assigned, from call number ``since`` on."""
        return sum(len(p) for _, call, p in self.told[since:] if call == "assigned")

    def check(self, *, may_share: bool = False) -> None:
        """``may_share``: a session was ended at the server, without the member's knowing."""
        assert not self.wrong
        assert may_share or not self.shared


class Recorder(GroupListener):
    """Notes what it is told; ``working`` runs in on_assigned, ``finishing`` in on_revoked."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.name, self.ledger = name, ledger
        self.held: set[Partition] = set()
        self.working: Hook | None = None
        self.finishing: Hook | None = None

    async def on_assigned(self, partitions: frozenset[Partition]) -> None:
        self._note("assigned", partitions, self.held & partitions)
        for partition in partitions:
            holder = self.ledger.holders.get(partition)
            if holder is not None:
                self.ledger.shared.append(f"{partition}: {holder} and {self.name}")
            self.ledger.holders[partition] = self.name
        self.held |= partitions
        if self.working:
            await self.working(partitions)

    async def on_revoked(self, partitions: frozenset[Partition]) -> None:
        self._note("revoking", partitions, partitions - self.held)
        if self.finishing:
            await self.finishing(partitions)
        self._note("revoked", partitions, partitions - self.held)
        self._release(partitions)

    async def on_lost(self, partitions: frozenset[Partition]) -> None:
        self._note("lost", partitions, partitions - self.held)
        self._release(partitions)

    def _note(self, call: str, partitions: frozenset[Partition], odd: Set[Partition]) -> None:
        self.ledger.told.append((self.name, call, partitions))
        if odd or not partitions:
            self.ledger.wrong.append(f"{self.name} {call} {sorted(partitions)}, odd {sorted(odd)}")

    def _release(self, partitions: frozenset[Partition]) -> None:
        self.held -= partitions
        for partition in partitions:
            if self.ledger.holders.get(partition) == self.name:
                del self.ledger.holders[partition]


class Peer:
    """A member with a session of its own, as another process would be."""

    def __init__(self, group: Group, session: ZkSession, recorder: Recorder) -> None:
        self.group, self.session, self.recorder = group, session, recorder
        self.stack = AsyncExitStack()

    @property
    def owned(self) -> frozenset[Partition]:
        return self.group.owned

    async def leave(self) -> None:
        await self.stack.aclose()


class Bench:
    """A group whose members come and go as a test likes; all leave at the end."""

    def __init__(self, address: str, name: str = "g") -> None:
        self.address, self.name = address, name
        self.patience_s = PATIENCE_S
        self.ledger = Ledger()
        self.peers: dict[str, Peer] = {}

    def prepare(
        self,
        name: str,
        *,
        address: str | None = None,
        topics: Mapping[str, int] | None = None,
        settings: GroupSettings = QUICK,
        timeout_s: float = STEADY_SESSION_S,
        instance_id: str | None = None,
        **options: Any,
    ) -> Peer:
        """A member that has not entered yet."""
        session = connect(
            address or self.address, session_timeout_s=timeout_s, name=name, close_timeout_s=1.0
        )
        recorder = Recorder(name, self.ledger)
        group = Group(
            session,
            self.name,
            topics={"jobs": 6} if topics is None else topics,
            listener=recorder,
            settings=replace(settings, client_id=name, instance_id=instance_id),
            **options,
        )
        return Peer(group, session, recorder)

    async def enter(self, peer: Peer) -> Peer:
        self.peers[peer.recorder.name] = peer
        await peer.stack.enter_async_context(peer.session)
        await peer.stack.enter_async_context(peer.group)
        return peer

    async def join(self, name: str, **options: Any) -> Peer:
        return await self.enter(self.prepare(name, **options))

    async def shared_out(self, *peers: Peer, count: int = 6) -> None:
        """Wait until ``peers``, and they alone, hold all ``count`` partitions, evenly."""

        def is_even() -> bool:
            sizes = [len(peer.owned) for peer in peers]
            stable = all(
                len(peer.group.metadata.members) == len(peers)
                and peer.group.metadata.state == "Stable"
                and peer.group.generation == peers[0].group.generation
                for peer in peers
            )
            return stable and sum(sizes) == count and max(sizes) - min(sizes) <= 1

        await eventually(is_even, self.patience_s)

    async def close(self) -> None:
        for peer in self.peers.values():
            await peer.leave()
