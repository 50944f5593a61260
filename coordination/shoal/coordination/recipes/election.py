"""Elect one of several processes; the others wait to take its place.

::

    /elections/<name>/leader     the leader (ephemeral, JSON); its creation zxid is the epoch
    /elections/<name>/fence      the epoch of the newest leader (see fence.py)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from shoal.coordination import znodes
from shoal.coordination.errors import NoNode, NotLeader
from shoal.coordination.recipes.fence import raise_fence
from shoal.coordination.recipes.ownership import OwnerNodes, Ownership, OwnershipListener
from shoal.coordination.session.documents import read_object
from shoal.coordination.session.nodes import Check
from shoal.coordination.session.session import ZkSession

SEAT = 0  # an election is the ownership of a single partition


class ElectionListener:
    """Hears what becomes of a candidate; override what you need. One call at a time."""

    async def on_elected(self, epoch: int) -> None:
        """We lead. Begin what a leader does, and return: the leadership lasts on.

        ``epoch`` is greater than that of every leader before. If this fails we step back, and
        stand again a second later.
        """

    async def on_deposed(self) -> None:
        """We are stepping back, and still lead while this runs: finish, then return."""

    async def on_lost(self) -> None:
        """We can no longer prove that we lead, so another may: stop without writing.

        Comes before another can be elected, except in a process that was paused: there it
        comes as soon as the process runs again. A running ``on_elected`` or ``on_deposed`` has
        been cancelled before. When the session is proven again we stand again by ourselves.
        """


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader as of a moment ago, and its data."""

    candidate_id: str
    epoch: int
    data: Mapping[str, Any]


class Election:
    """Stand for ``name`` for the life of the ``async with`` block.

    At most one candidate is between its ``on_elected`` and its ``on_deposed`` or ``on_lost``. What
    a process that was paused beyond its end may still send is stopped by the epoch: a leader that
    writes to ZooKeeper puts ``fence`` into its transactions, and one that writes elsewhere sends
    the epoch along for the other side to refuse lower ones::

        await session.multi([election.fence, SetData("/report", b"...")])

    After a crash the next leader is elected when the crashed one's session ends; after an orderly
    exit at once. ``data`` (JSON) is for the callers of ``leader_of``. An error that no repetition
    helps, such as AccessDenied, ends the candidacy; ``wait`` raises it.
    """

    def __init__(
        self,
        session: ZkSession,
        name: str,
        candidate_id: str,
        listener: ElectionListener,
        *,
        data: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._session, self.name, self.candidate_id = session, name, candidate_id
        self._listener = listener
        self._fence: Check | None = None
        self._ownership = Ownership(
            session,
            OwnerNodes(lambda _: _leader_path(name), candidate_id, data),
            OwnershipListener(self._acquired, self._released, self._lost),
        )

    async def __aenter__(self) -> Self:
        await self._ownership.__aenter__()
        self._ownership.set_wanted([SEAT])
        return self

    async def __aexit__(self, *_: object) -> None:
        """Step back: ``on_deposed`` first, if we lead."""
        await self._ownership.__aexit__()

    async def wait(self) -> None:
        """Return when the block has been left. Raises what has ended our candidacy before that."""
        await self._ownership.wait()

    @property
    def epoch(self) -> int | None:
        """The epoch if we lead and can prove it at this moment, else None."""
        return self._ownership.owned().get(SEAT)

    @property
    def fence(self) -> Check:
        """What the leader's transactions carry. Raises NotLeader.

        A transaction with it fails, with BadVersion as the first result, once another leads.
        """
        if self.epoch is None or self._fence is None:
            raise NotLeader(self.name, self.candidate_id)
        return self._fence

    async def _acquired(self, _: int, epoch: int) -> None:
        path = f"{znodes.election(self.name)}/fence"
        self._fence = await raise_fence(self._session, path, epoch)
        await self._listener.on_elected(epoch)

    async def _released(self, _: int) -> None:
        await self._listener.on_deposed()
        self._fence = None

    async def _lost(self, _: frozenset[int]) -> None:
        self._fence = None
        await self._listener.on_lost()


async def leader_of(session: ZkSession, name: str) -> Leader | None:
    """Return the leader, None if there is none now. For all processes, not only candidates."""
    try:
        node = await session.get(_leader_path(name))
    except NoNode:
        return None
    data = read_object(node.data) or {}
    candidate_id = data.pop("owner_id", None)
    if not node.stat.session_id or not isinstance(candidate_id, str):
        return None  # the node was damaged; its owner writes it again
    return Leader(candidate_id, node.stat.czxid, data)


def _leader_path(name: str) -> str:
    return f"{znodes.election(name)}/leader"
