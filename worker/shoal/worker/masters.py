"""Calls to the masters that own the partitions of attempts."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog

from shoal.coordination import Owners
from shoal.coordination.errors import CoordinationError
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels, call
from shoal.proto.errors import PeerRefused, PeerUnavailable, RpcError

log = structlog.get_logger()

# A master may be storing the ends of thousands of tasks. A connection on which nothing comes is
# found sooner, by probes (intake/reachability.py).
CALL_TIMEOUT_S = 10.0
FIRST_DELAY_S, LONGEST_DELAY_S = 0.05, 2.0  # between repetitions
_TRIES = 3  # with other masters each time: an owner may have changed since it was read

T = TypeVar("T")


def delay_s(tries: int) -> float:
    """Return how long to wait after ``tries`` (0, 1 …) failures in a row; doubles, with jitter."""
    doubled: float = FIRST_DELAY_S * 2 ** min(tries, 10)
    return min(LONGEST_DELAY_S, doubled) * random.uniform(0.75, 1.0)


class Masters:
    """Find owners, call them, and read the owner again when they do not answer.

    ``fetch_timeout_s``: how long a call for payloads waits for its answer.
    """

    def __init__(
        self, owners: Owners, channels: Channels, fetch_timeout_s: float = CALL_TIMEOUT_S
    ) -> None:
        self._owners, self._channels = owners, channels
        self._calls: dict[str, int] = defaultdict(int)  # in flight, by address
        self._silent: set[str] = set()  # addresses that did not answer
        self._fetch_timeout_s = fetch_timeout_s
        self._on_answer: list[Callable[[str], None]] = []
        self._on_silence: list[Callable[[str], None]] = []

    def subscribe(
        self, *, on_answer: Callable[[str], None], on_silence: Callable[[str], None]
    ) -> None:
        """Have one of the two called after every call, with the master's address."""
        self._on_answer.append(on_answer)
        self._on_silence.append(on_silence)

    def _answered(self, address: str) -> None:
        for notify in self._on_answer:
            notify(address)

    def _unanswered(self, address: str) -> None:
        for notify in self._on_silence:
            notify(address)

    async def addresses(self, partitions: Iterable[int]) -> dict[int, str]:
        """Return the owner's address for each of ``partitions`` that has one now."""
        known = {partition: self._owners.known(partition) for partition in partitions}
        found = {partition: owner.address for partition, owner in known.items() if owner}
        if unknown := known.keys() - found.keys():
            looked_up = await asyncio.gather(*(self._address(partition) for partition in unknown))
            found |= {p: address for p, address in zip(unknown, looked_up, strict=True) if address}
        return found

    async def _address(self, partition: int) -> str | None:
        try:
            owner = await self._owners.owner_of(partition)
        except CoordinationError as error:
            log.debug("owner unknown", partition=partition, error=str(error))
            return None
        return owner.address if owner else None

    def forget(self, partitions: Iterable[int]) -> None:
        """Read the owners of ``partitions`` again next time."""
        for partition in partitions:
            self._owners.forget(partition)

    async def fetch(self, address: str, request: pb.FetchRequest) -> pb.FetchResponse:
        """Ask for payloads. Raises PeerUnavailable, PeerRefused."""
        return await self._call(
            address,
            lambda: self._channels.master(address).Fetch(request, timeout=self._fetch_timeout_s),
        )

    async def report(self, address: str, request: pb.ReportRequest) -> pb.ReportResponse:
        """Hand reports over. Raises PeerUnavailable, PeerRefused."""
        return await self._call(
            address, lambda: self._channels.master(address).Report(request, timeout=CALL_TIMEOUT_S)
        )

    def suspect(self, partitions: Iterable[int]) -> None:
        """The owners of ``partitions`` have left us without an answer for too long."""
        owners = [self._owners.known(partition) for partition in partitions]
        for address in {owner.address for owner in owners if owner}:
            self._unanswered(address)

    async def probe(self, address: str, timeout_s: float) -> None:
        """Ask for nothing, to see whether the master answers. Raises PeerUnavailable.

        Over a connection of its own: one that has fallen silent says nothing about new ones.
        """
        try:
            async with self._channels.another_to_master(address) as stub:
                await call(address, stub.Fetch(pb.FetchRequest(), timeout=timeout_s))
        except PeerUnavailable:
            self._unanswered(address)
            raise
        except PeerRefused:
            pass  # that is an answer, too
        # The connection that fell silent may be dead; closing it would cancel the calls on it.
        self._channels.renew(address)
        self._answered(address)

    async def standing(self, address: str, request: pb.StandingRequest) -> pb.StandingResponse:
        """Ask how instances stand; any master knows. Raises PeerUnavailable, PeerRefused."""
        stub = self._channels.master(address)
        return await self._call(address, lambda: stub.Standing(request, timeout=CALL_TIMEOUT_S))

    async def _call(self, address: str, start: Callable[[], Awaitable[T]]) -> T:
        self._calls[address] += 1
        try:
            answer = await call(address, start())
        except PeerUnavailable:
            self._silent.add(address)
            self._unanswered(address)
            raise
        except PeerRefused:
            self._answered(address)
            raise
        else:
            self._silent.discard(address)
            self._answered(address)
            return answer
        finally:
            self._calls[address] -= 1
            if not self._calls[address]:
                del self._calls[address]
                if address in self._silent:
                    # Most likely dead for good: its successor has another address. Only now,
                    # for closing a channel cancels the calls that others wait for.
                    self._silent.discard(address)
                    await self._channels.forget(address)


@dataclass(frozen=True)
class Standing:
    """How instances stand. Those in neither set are not known: they have been purged."""

    open: Collection[int]
    ended: Mapping[int, float]  # and when; in seconds since the Unix epoch
    now: float  # by the masters' clock: ours alone may be wrong
    cluster: str = ""  # the uid of the cluster's database


Ask = Callable[[Sequence[int]], Awaitable[Standing]]  # raises ShoalError


class Standings:
    """Asks any master that owns a partition; each of them knows of all instances."""

    def __init__(self, masters: Masters, partitions: int) -> None:
        self._masters, self._partitions = masters, partitions

    async def __call__(self, ids: Sequence[int]) -> Standing:
        """Return how these instances stand. Raises RpcError if no master can be asked."""
        failure: RpcError = PeerUnavailable("any master", "no partition has an owner")
        for _ in range(_TRIES):
            some = random.sample(range(self._partitions), min(3, self._partitions))
            for address in (await self._masters.addresses(some)).values():
                try:
                    request = pb.StandingRequest(workflow_instance_ids=ids)
                    found = await self._masters.standing(address, request)
                except RpcError as error:
                    self._masters.forget(some)
                    failure = error
                else:
                    ended = dict(zip(found.ended, found.ended_at, strict=True))
                    return Standing(set(found.open), ended, found.now, found.cluster)
        raise failure
