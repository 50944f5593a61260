"""What a report is made of: answers of the API, as they came."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Collected:
    """Answers about one window. ``load`` None: it is for who may see the cluster.

    Lists are first pages: the workflows that ``slower``, ``waits`` … name come first.
    ``project``: the only one that it is about. ``at``: when the answers came.
    """

    at: datetime
    source: str  # the API
    project: str | None
    summary: Answer
    slower: Sequence[Answer]
    waits: Sequence[Answer]
    late: Sequence[Answer]
    failing: Sequence[Answer]
    failures: Answer
    costs: Answer
    load: Answer | None
    minutes: Answer

    @property
    def is_empty(self) -> bool:
        """Whether there are no results to report."""
        return self.summary["until"] is None

    @property
    def got_slower(self) -> list[Answer]:
        """The workflows whose median has grown, and by more than a tenth or a second."""
        return [
            one
            for one in self.slower
            if (one["duration_change_s"] or 0)
            > max(1.0, 0.1 * float(one["before"]["duration_p50_s"] or 0.0))
        ]

    @property
    def waiting(self) -> list[Answer]:
        """The workflows whose runs and attempts wait for more than a second on average."""
        return [one for one in self.waits if waited_s(one["now"]) > 1.0]

    @property
    def were_late(self) -> list[Answer]:
        """The workflows that had late runs."""
        return [one for one in self.late if one["now"]["late"]]

    @property
    def hot_minutes(self) -> list[Answer]:
        """Minutes of the day in which very many schedules fire, the fullest first."""
        hot = [
            one for one in self.minutes["minutes"] or () if one["is_hot"] and one["scope"] == "day"
        ]
        return sorted(hot, key=lambda one: (-one["starts_mean"], one["minute"]))

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {**vars(self), "at": self.at.isoformat(timespec="seconds")}


def waited_s(values: Answer) -> float:
    """Return how long a run waits for its admission, and an attempt in the queue, on average."""
    return (values["admission_mean_s"] or 0.0) + (values["wait_mean_s"] or 0.0)
