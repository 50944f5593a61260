"""Processes of attempts on the workers, or at an SSH host, which are all this machine."""

from tests.kills.processes import Process, Processes, is_alive, jobs
from tests.kills.sides.side import Sight


class LocalSide:
    """The job of an attempt is all its processes."""

    def __init__(self, *, remote: bool = False) -> None:
        self.name = "processes at the SSH host" if remote else "processes of workers"
        self.latest: list[Process] = []
        self._processes, self._remote = Processes(), remote

    def look(self) -> Sight:
        """See Side. Two count as alive together if both are there after both were found."""
        self.latest = self._processes.look()
        sight = {}
        for marker, attempts in jobs(self.latest, remote=self._remote).items():
            live = frozenset(attempts)
            if len(live) > 1:  # the look takes a moment, in which one may follow the other
                live = frozenset(a for a, found in attempts.items() if any(map(is_alive, found)))
            sight[marker] = live
        return sight
