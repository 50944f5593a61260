"""Whether what there is, is what a task waits for. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shoal.core.timing.durations import format_duration
from shoal.worker.types.wait.kind import WaitFileParams, What

MOST_NAMED = 1_000  # files in the output


@dataclass(frozen=True)
class Found:
    """One entry. ``changed_at`` is in seconds since the Unix epoch; None: not known."""

    path: str
    size: int
    changed_at: float | None
    is_folder: bool = False


@dataclass(frozen=True)
class WaitVerdict:
    """``good`` are the entries that fulfil all conditions, by path.

    ``answer`` is None if that is enough; else it says what is missing, and ``passes_in_s`` when
    time alone may change that.
    """

    good: Sequence[Found]
    answer: str | None = None
    passes_in_s: float | None = None


def judge(
    found: Sequence[Found],
    params: WaitFileParams,
    now: float,
    newer_than: datetime | None = None,
) -> WaitVerdict:
    """Judge the entries of a place at ``now``, in seconds since the Unix epoch."""
    good: list[Found] = []
    problems: Counter[str] = Counter()
    first: dict[str, str] = {}
    waits: list[float] = []
    for one in sorted(found, key=lambda each: each.path):
        problem, wait_s = _problem(one, params, now, newer_than)
        if problem is None:
            good.append(one)
            continue
        kind = problem.partition(" ")[0]
        problems[kind] += 1
        first.setdefault(kind, f"{one.path} {problem.partition(' ')[2]}")
        if wait_s is not None:
            waits.append(wait_s)
    if len(good) >= params.at_least:
        return WaitVerdict(good)
    lacking = params.at_least - len(good)
    # When the last one that is needed will have rested long enough, if nothing else comes.
    passes = sorted(waits)[lacking - 1] if len(waits) >= lacking else None
    return WaitVerdict(good, _answer(len(good), params, problems, first), passes)


def _problem(
    one: Found, params: WaitFileParams, now: float, newer_than: datetime | None
) -> tuple[str | None, float | None]:
    """Return the kind of the first condition that does not hold with its text, and for how long."""
    if one.is_folder and params.what is What.FILE:
        return "what is a folder, not a file", None
    if not one.is_folder and params.what is What.FOLDER:
        return "what is a file, not a folder", None
    if not one.is_folder and one.size < params.min_size:
        return f"size has {one.size:,} bytes, at least {params.min_size:,} are wanted", None
    if one.changed_at is None:
        if params.stable_for or newer_than is not None:
            return "time does not say when it was changed", None
        return None, None
    if newer_than is not None and one.changed_at <= newer_than.timestamp():
        return f"old was changed {_instant(one.changed_at)}, before {newer_than.isoformat()}", None
    rested_s = now - one.changed_at
    if rested_s < params.stable_for:
        wanted = format_duration(params.stable_for)
        if rested_s < 0:
            return f"rest was changed {_instant(one.changed_at)}, which is to come", None
        since = format_duration(round(rested_s, 1))
        text = f"rest was changed {since} ago, {wanted} are wanted"
        return text, params.stable_for - rested_s
    return None, None


def _answer(
    good: int, params: WaitFileParams, problems: Counter[str], first: dict[str, str]
) -> str:
    place = params.path or params.url or ""
    parts = []
    if params.at_least > 1:
        parts.append(f"{good} of {params.at_least} are there")
    for kind, count in problems.most_common(2):
        more = f", and {count - 1} more like it" if count > 1 else ""
        parts.append(first[kind] + more)
    if not parts or (not problems and not good):
        return f"{place}: nothing is there"
    return "; ".join(parts)


def outputs(good: Sequence[Found]) -> dict[str, Any]:
    """Return what the task gives on about the entries it has found, at least one."""
    given: dict[str, Any] = {
        "file": good[0].path,
        "size": sum(one.size for one in good),
        "count": len(good),
        "files": [one.path for one in good[:MOST_NAMED]],
    }
    times = [one.changed_at for one in good if one.changed_at is not None]
    if times:
        given["mtime"] = _instant(max(times))
    return given


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
