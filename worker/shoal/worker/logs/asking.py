"""Ask a master how workflow instances stand: whether they are there, and have ended."""

import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from shoal.proto import shoal_pb2 as pb
from shoal.proto.errors import PeerUnavailable, RpcError
from shoal.worker.masters import Masters

_TRIES = 3  # with other masters each time: an owner may have changed since it was read


@dataclass(frozen=True)
class Standing:
    """How instances stand. Those in neither set are not known: they have been purged."""

    open: Collection[int]
    ended: Mapping[int, float]  # and when; in seconds since the Unix epoch
    now: float  # by the masters' clock: ours alone may be wrong
    cluster: str = ""  # the uid of the cluster's database


Ask = Callable[[Sequence[int]], Awaitable[Standing]]  # raises ShoalError


class Asking:
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
