"""Turns at a znode: of the actors that share a session, one at a time works on it.

ZooKeeper knows the session that holds an ephemeral znode, but not which election, job or member of
this process created it. So an actor that wants to hold a znode queues for it here first. Only the
actor whose turn it is creates, adopts or deletes the znode, and a znode of our session is its own.
"""

import asyncio
from collections import deque


class NodeTurns:
    """The turns of one session, by path. For the session's loop only."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def queue(self, path: str) -> "NodeTurn":
        """Queue for ``path``, behind the actors that have queued for it before."""
        place = self._places.setdefault(path, _Place())
        turn = NodeTurn(self, path, place)
        place.queue.append(turn)
        if place.queue[0] is turn:
            turn.has_come.set()
        return turn

    def _end(self, path: str, place: "_Place", turn: "NodeTurn") -> None:
        place.queue.remove(turn)
        if place.queue:
            place.queue[0].has_come.set()
        elif not place.may_stand:
            del self._places[path]


class NodeTurn:
    """The place of one actor in the queue for a znode.

    Call ``end`` whether or not the turn has come. ``may_stand`` and ``last_epoch`` pass from each
    actor to the next one, so that a znode that one of them could not delete is not overlooked, and
    no epoch is used twice.
    """

    def __init__(self, turns: NodeTurns, path: str, place: "_Place") -> None:
        self._turns, self._path, self._place = turns, path, place
        self.has_come = asyncio.Event()

    @property
    def is_current(self) -> bool:
        """Whether the turn has come and has not ended."""
        return bool(self._place.queue) and self._place.queue[0] is self

    @property
    def may_stand(self) -> bool:
        """Whether the znode may be one of this session that no actor holds."""
        return self._place.may_stand

    @may_stand.setter
    def may_stand(self, value: bool) -> None:
        assert self.is_current
        self._place.may_stand = value

    @property
    def last_epoch(self) -> int:
        """The creation zxid of the znode that was held here last; 0 if none was."""
        return self._place.last_epoch

    @last_epoch.setter
    def last_epoch(self, value: int) -> None:
        assert self.is_current
        self._place.last_epoch = value

    def end(self) -> None:
        """Let the next actor begin. A second call changes nothing."""
        if self in self._place.queue:
            self._turns._end(self._path, self._place, self)


class _Place:
    """What the actors of a session share about one path."""

    def __init__(self) -> None:
        self.queue: deque[NodeTurn] = deque()
        self.may_stand = False
        self.last_epoch = 0
