"""When the attempts of a run waited and worked, and which of them its end has waited for."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from shoal.core.runs.records import TaskInstance


def critical_path(
    upstream: Mapping[str, Sequence[str]], newest: Mapping[str, TaskInstance]
) -> list[str]:
    """Return the tasks that the end of a run has waited for, the first one first.

    From the task that ended last back to the one among those before it that ended last, and so on:
    had one of them been quicker, the run might have been. It leaves out tasks that never ran.
    """
    ended = {name: one.finished_at for name, one in newest.items() if _ran(one)}
    path: list[str] = []
    candidates = list(ended)
    while candidates:
        last = max(candidates, key=lambda name: (ended[name] or _EARLIEST, name))
        path.append(last)
        candidates = [name for name in _before(last, upstream, newest) if name in ended]
    return path[::-1]


_EARLIEST = datetime.min.replace(tzinfo=UTC)


def _ran(one: TaskInstance) -> bool:
    return one.started_at is not None and one.finished_at is not None


def _before(
    task: str, upstream: Mapping[str, Sequence[str]], newest: Mapping[str, TaskInstance]
) -> set[str]:
    """Return the nearest tasks before ``task`` that ran; what was skipped is passed through."""
    found: set[str] = set()
    waiting, seen = list(upstream[task]), set(upstream[task])
    while waiting:
        name = waiting.pop()
        if name in newest and _ran(newest[name]):
            found.add(name)
            continue
        further = [one for one in upstream[name] if one not in seen]
        seen.update(further)
        waiting += further
    return found


def seconds(start: datetime | None, end: datetime | None) -> float | None:
    """Return how long it took; None: it has not begun or not ended."""
    return None if start is None or end is None else (end - start).total_seconds()
