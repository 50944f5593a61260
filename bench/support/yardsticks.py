"""What figures of two machines are compared by: the start of a process, and a piece of Python."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.support import python_work, spawn_limit
from bench.support.python_work import PythonWork
from bench.support.spawn_limit import SpawnLimit


@dataclass(frozen=True)
class Yardsticks:
    """Both, measured one right after the other."""

    spawn: SpawnLimit
    python: PythonWork

    @classmethod
    def median(cls, several: "Sequence[Yardsticks]") -> "Yardsticks":
        """Return the medians of several measurements."""
        return cls(
            SpawnLimit.median([one.spawn for one in several]),
            PythonWork.median([one.python for one in several]),
        )


def measure() -> Yardsticks:
    """Measure both, which takes three or four seconds."""
    return Yardsticks(spawn_limit.measure(), python_work.measure())
