"""Who else claims from a group's queue: an ephemeral znode for each claimer, and our rank."""

import re
import time

from shoal.coordination.cluster import layout
from shoal.coordination.errors import NodeExists, NoNode
from shoal.coordination.queue.contention import ClaimerPlace
from shoal.coordination.session.nodes import WatchEvent
from shoal.coordination.session.session import ZkSession

LONGEST_TRUST_S = 5.0  # in a list, for a watch is only a hint
ALONE = ClaimerPlace(0, 1)
_SESSION = re.compile(r"[0-9a-f]{16}")


class Claimers:
    """The claimers of one group as a session knows them, itself among them.

    It only keeps claims from colliding: no result depends on it being right.
    """

    def __init__(self, session: ZkSession, group: str) -> None:
        self._session = session
        self._path = layout.claimers(group)
        self._read_in = 0  # generation of the session
        self._read_at = float("-inf")
        self._changed = True
        self.place = ALONE

    @property
    def changed(self) -> bool:
        """Others may have come or gone, or our session is a new one: ``refresh`` will read."""
        return self._changed or self._read_in != self._session.generation

    async def refresh(self) -> None:
        """Register, and read the claimers, unless they are known."""
        session, now = self._session, time.monotonic()
        registered = self._read_in == session.generation
        if registered and not self._changed and now < self._read_at + LONGEST_TRUST_S:
            return
        self._changed = False
        ours = f"{session.session_id:016x}"
        try:
            if not registered:
                await self._register(ours)
            found = (await session.children(self._path, watch=self._on_change)).names
            names = sorted(name for name in found if _SESSION.fullmatch(name))
        except NoNode:  # all were deleted: the next reading registers us again
            self._read_in, self._changed, self.place = 0, True, ALONE
            return
        except BaseException:
            self._changed = True
            raise
        self._read_in, self._read_at = (session.generation if ours in names else 0), now
        self.place = ClaimerPlace(names.index(ours), len(names)) if ours in names else ALONE

    async def _register(self, name: str) -> None:
        try:
            await self._session.create(f"{self._path}/{name}", ephemeral=True, makepath=True)
        except NodeExists:
            return  # the answer to an earlier create was lost

    def _on_change(self, _: WatchEvent) -> None:
        self._changed = True
