"""How people have arranged the tasks of a workflow on a canvas. It is not a part of any version."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Layout:
    """Places of tasks by name, (x, y) in pixels; groups of tasks by name; which are folded.

    Tasks that the newest version has not stay: an older version or a draft may have them.
    """

    places: Mapping[str, tuple[float, float]]
    groups: Mapping[str, tuple[str, ...]]
    folded: tuple[str, ...]
    updated_at: datetime
    updated_by: str

    def content(self) -> dict[str, Any]:
        """Return what is stored, without its time and its author."""
        return {
            "places": {name: list(place) for name, place in self.places.items()},
            "groups": {name: list(tasks) for name, tasks in self.groups.items()},
            "folded": list(self.folded),
        }

    @classmethod
    def of(cls, content: Mapping[str, Any], updated_at: datetime, updated_by: str) -> "Layout":
        """Return what was stored. Raises KeyError, TypeError, ValueError."""
        return cls(
            places={name: (float(x), float(y)) for name, (x, y) in content["places"].items()},
            groups={name: tuple(tasks) for name, tasks in content["groups"].items()},
            folded=tuple(content["folded"]),
            updated_at=updated_at,
            updated_by=updated_by,
        )

    def of_tasks(self, names: Collection[str]) -> "Layout":
        """Return it without all other tasks, and without groups that have none left."""
        kept = {name: tuple(t for t in tasks if t in names) for name, tasks in self.groups.items()}
        groups = {name: tasks for name, tasks in kept.items() if tasks}
        return replace(
            self,
            places={name: place for name, place in self.places.items() if name in names},
            groups=groups,
            folded=tuple(name for name in self.folded if name in groups),
        )
