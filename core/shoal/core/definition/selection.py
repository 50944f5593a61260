"""Which tasks of a workflow a run is about: all of them, or a chosen part of the graph."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class SelectionMode(StrEnum):
    """What is taken along with the named tasks."""

    ONLY = "only"  # nothing
    UPSTREAM = "upstream"  # everything they depend on, directly or not
    DOWNSTREAM = "downstream"  # everything that depends on them, directly or not


@dataclass(frozen=True)
class Selection:
    """The named tasks, and what goes with them."""

    tasks: tuple[str, ...]
    mode: SelectionMode = SelectionMode.ONLY

    def unknown(self, known: Iterable[str]) -> list[str]:
        """Return the named tasks that the workflow does not have, in their order."""
        names = set(known)
        return [task for task in self.tasks if task not in names]

    def of(
        self,
        upstream: Mapping[str, Sequence[str]],
        downstream: Mapping[str, Sequence[str]],
    ) -> frozenset[str]:
        """Return all selected tasks of a graph given as neighbours by task."""
        match self.mode:
            case SelectionMode.ONLY:
                return frozenset(self.tasks)
            case SelectionMode.UPSTREAM:
                return _reachable(self.tasks, upstream)
            case SelectionMode.DOWNSTREAM:
                return _reachable(self.tasks, downstream)


def _reachable(start: Iterable[str], neighbours: Mapping[str, Sequence[str]]) -> frozenset[str]:
    found = set(start)
    to_visit = list(found)
    while to_visit:
        for task in neighbours[to_visit.pop()]:
            if task not in found:
                found.add(task)
                to_visit.append(task)
    return frozenset(found)
