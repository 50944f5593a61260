"""How many runs a master may start, and of which projects.

A master holds at most ``most`` runs. Runs that only wait do not count: for their admission, for a
slot of a concurrency group, for a worker group without workers. While there is room, pending starts
are taken in turn from all projects. A full master still takes starts of projects that have less
than their share (``most`` divided by the number of projects that have runs here or want to start
some). So no project keeps others from starting, and a master never holds more than twice ``most``
runs that count.

Memory has a bound too: with ``_WAITING_PER_RUN`` times as many runs, waiting ones included, a
master takes starts of projects below their share alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from shoal.core.runs.commands import Command
from shoal.core.runs.run import Run
from shoal.core.runs.waiting import only_waits

_WAITING_PER_RUN = 10
_ALWAYS_HELD = 10_000  # runs, most of which may wait

Served = Callable[[str], bool]


class StartCapacity:
    """The room of one master. ``runs``: those that it holds, by id."""

    def __init__(self, runs: Mapping[int, Run], most: int, is_served: Served) -> None:
        self._runs, self._most, self._is_served = runs, most, is_served

    def has_room_for(self, count: int) -> bool:
        """Whether there is room for so many, whatever they are. Costs nothing."""
        return len(self._runs) + count <= self._most

    def choose(self, candidates: Sequence[tuple[Command, str]]) -> list[Command]:
        """Return those of the candidates that may start now, in their order.

        ``candidates``: commands with their projects, the projects taking turns.
        """
        is_served = cache(self._is_served)  # it walks over all workers, and many runs ask
        active = Counter(
            run.plan.spec.project for run in self._runs.values() if not only_waits(run, is_served)
        )
        room = min(
            self._most - active.total(),
            max(_WAITING_PER_RUN * self._most, _ALWAYS_HELD) - len(self._runs),
        )
        share = self._share(active, (project for _, project in candidates))
        chosen = []
        for command, project in candidates:
            if room > 0 or active[project] < share:
                active[project] += 1
                room -= 1
                chosen.append(command)
        return chosen

    def _share(self, active: Counter[str], candidates: Iterable[str]) -> int:
        projects = {project for project, count in active.items() if count} | set(candidates)
        return max(1, self._most // max(1, len(projects))) if len(projects) > 1 else 0
