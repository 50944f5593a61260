"""The base of all faults."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar

from tests.chaos.cluster.cluster import POSTGRESQL, SQLITE, Cluster
from tests.chaos.observer import View
from tests.chaos.records import now_s

SERVER_ONLY = frozenset({POSTGRESQL})  # needs a database server that roles reach by network
TAKEOVER_S = 90.0  # how long a takeover may take before the hold ends without it


class Skipped(Exception):
    """The fault cannot be injected on this machine; says why."""


class Fault(ABC):
    """One injection. The runner calls ``begin``, ``hold``, ``heal`` and then ``bit``, in order.

    ``dice`` decides everything that the plan leaves to chance, so a seed replays it.
    """

    name: str
    # Two faults that hurt one of these at a time would be one fault of another kind.
    hurts: frozenset[str] = frozenset()
    alone: ClassVar[bool] = False  # leaves nothing whole that another one could hurt
    costs_workers: ClassVar[bool] = True  # as in the record
    spoils_disk: ClassVar[bool] = False
    databases: ClassVar[frozenset[str]] = frozenset({POSTGRESQL, SQLITE})  # it can hurt

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.target = ""
        self.before = View()  # the whole cluster just before
        self.taken_over_s: float | None = None
        self.frozen_pids: frozenset[int] = frozenset()

    @abstractmethod
    async def begin(self, cluster: Cluster) -> None:
        """Do the harm. Sets ``target``. Raises Skipped."""

    async def hold(self, cluster: Cluster) -> None:
        """Return when the harm has lasted long enough."""
        return

    async def heal(self, cluster: Cluster) -> None:
        """Remove the cause, start again what has died."""
        return

    @abstractmethod
    def bit(self, after: View) -> tuple[bool, str]:
        """Tell whether it had an effect, and the evidence."""

    async def note_takeover(self, cluster: Cluster, gone: Collection[int]) -> None:
        """Note when masters other than the processes ``gone`` have all partitions."""
        await cluster.until_taken_over(gone, TAKEOVER_S)
        self.taken_over_s = now_s()

    async def for_timeouts(self, cluster: Cluster, factor: float) -> None:
        """Let ``factor`` session timeouts pass: the length is the fault's own."""
        await asyncio.sleep(factor * cluster.timeout_s)


def moved(before: View, after: View) -> int:
    """Return how many partitions have another epoch than before."""
    return sum(after.rows[n][1] != epoch for n, (_, epoch) in before.rows.items())


def new_session(before: View, after: View, pid: int) -> bool:
    """Whether a process that lives on has another session than before."""
    then, now = before.members.get(pid), after.members.get(pid)
    return then is not None and now is not None and then.session != now.session


def effects(before: View, after: View) -> str:
    """Return in words what has happened to partitions and attempts."""
    lost = after.lost - before.lost
    return f"{moved(before, after)} partitions moved, {lost} attempts lost"
