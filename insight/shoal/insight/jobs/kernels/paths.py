"""Critical paths of many runs of one plan, at once.

The model of a run: a task starts ``wait`` after the last end that it waited for, and works ``own``.
Its links are tasks that ran; a task that did not run is transparent, so the one behind it waited
for what was before it. All waits and own times being kept, the end of the run is the longest way
through the DAG, and the run would end earlier by

    gain(t) = min(own(t), end - longest way that avoids t)

were t done in no time. Ways are found by positions in a topological order: a way avoids t if one of
its steps passes over t's position. So all gains take O((n + e) log n), n tasks with e edges.

Times are integers (microseconds since the run began) in arrays of tasks x runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
#: Clocks of workers differ: what ended so little after a start may still have been before it.
CLOCKS_US = 2_000_000
_NEVER = np.int64(-(1 << 60))


@dataclass(frozen=True)
class PlanGraph:
    """A DAG in topological order. ``upstream``, ``downstream``: positions in ``names``."""

    names: tuple[str, ...]
    upstream: tuple[Ints, ...]
    downstream: tuple[Ints, ...]

    @classmethod
    def of(cls, upstream: Mapping[str, Sequence[str]]) -> "PlanGraph":
        """Return the plan of tasks with the names of those before them. Raises CycleError."""
        known = {task: sorted(set(before) & upstream.keys()) for task, before in upstream.items()}
        names = tuple(TopologicalSorter(known).static_order())
        places = {name: at for at, name in enumerate(names)}
        before = [[places[one] for one in known[name]] for name in names]
        behind: list[list[int]] = [[] for _ in names]
        for at, ones in enumerate(before):
            for one in ones:
                behind[one].append(at)
        return cls(names, tuple(map(_array, before)), tuple(map(_array, behind)))


@dataclass(frozen=True)
class Links:
    """The links of the paths of some runs: each array has one value for each link.

    ``run``, ``task``: which; ``place``: 1 is the first of its path. Times in microseconds.
    """

    run: Ints
    task: Ints
    place: Ints
    wait: Ints
    own: Ints
    gain: Ints


@dataclass(frozen=True)
class _Times:
    """What the model is made from, tasks x runs. ``before``: the task that was waited for, or -1.

    ``end``: of transparent tasks, when what was before them had ended.
    """

    end: Ints
    wait: Ints
    own: Ints
    before: Ints


def critical_paths(plan: PlanGraph, started: Ints, finished: Ints, ran: Flags) -> Links:
    """Return the paths from the beginning of each run to the end of its last task.

    ``started``, ``finished``, ``ran``: tasks x runs. Of equal ends that of the task with the
    greater name counts.
    """
    times = _forward(plan, started, finished, ran)
    names = np.argsort(np.argsort(np.array(plan.names)))  # ranks
    last = _latest(np.where(ran, finished, _NEVER), names)
    runs = np.flatnonzero(ran.any(axis=0))
    at = last[runs]
    found: list[tuple[Ints, Ints]] = []
    while len(runs):
        found.append((runs, at))
        at = times.before[at, runs]
        runs, at = runs[at >= 0], at[at >= 0]
    gains = _gains(plan, times, ran)
    run = np.concatenate([one for one, _ in found] or [_array([])])
    task = np.concatenate([one for _, one in found] or [_array([])])
    step = np.repeat(np.arange(len(found)), [len(one) for one, _ in found])
    lengths = np.bincount(run, minlength=ran.shape[1])
    order = np.lexsort((-step, run))
    run, task, step = run[order], task[order], step[order]
    return Links(
        run=run,
        task=task,
        place=lengths[run] - step,
        wait=times.wait[task, run],
        own=times.own[task, run],
        gain=gains[task, run],
    )


def _forward(plan: PlanGraph, started: Ints, finished: Ints, ran: Flags) -> _Times:
    """Return what each task waited for, and for how long."""
    names = np.argsort(np.argsort(np.array(plan.names)))
    end = np.zeros_like(finished)
    wait, own = np.zeros_like(end), np.zeros_like(end)
    before = np.full_like(end, -1)
    # The task that ran at or before a task: itself, or what stands behind a transparent one.
    origin = np.full_like(end, -1)
    columns = np.arange(end.shape[1])
    for at, upstream in enumerate(plan.upstream):
        base = np.zeros(end.shape[1], dtype=np.int64)
        if len(upstream):
            counts = _counts(end[upstream], origin[upstream], started[at], ran[at])
            ends = np.where(counts, end[upstream], _NEVER)
            origins = origin[upstream]
            latest = _latest(ends, np.where(counts, names[origins], -1))
            any_counts = counts.any(axis=0)
            base = np.where(any_counts, np.maximum(ends[latest, columns], 0), 0)
            before[at] = np.where(any_counts, origins[latest, columns], -1)
        own[at] = np.where(ran[at], finished[at] - started[at], 0)
        wait[at] = np.where(ran[at], started[at] - base, 0)
        end[at] = np.where(ran[at], finished[at], base)
        origin[at] = np.where(ran[at], at, before[at])
    return _Times(end, wait, own, before)


def _counts(ends: Ints, origins: Ints, started: Ints, ran: Flags) -> Flags:
    """Return which of the ends before a task it can have waited for.

    Some tasks start before all that is before them has ended (``one_success``); a task that was
    run again alone ends after the start of those behind it.
    """
    return (origins >= 0) & (~ran | (ends <= started + CLOCKS_US))


def _latest(ends: Ints, ranks: Ints) -> Ints:
    """Return for each run the row with the latest end; of equal ones that of the highest rank."""
    ranks = ranks if ranks.ndim == 2 else ranks[:, None]
    latest = ends == ends.max(axis=0)
    return np.asarray(np.where(latest, ranks, -2).argmax(axis=0), dtype=np.int64)


def _gains(plan: PlanGraph, times: _Times, ran: Flags) -> Ints:
    """Return by how much each run would end earlier without the time of each task."""
    count, runs = times.end.shape
    # The longest way from the end of a task to an end, and from the start of its wait to there.
    tail = np.zeros_like(times.end)
    rest = np.empty_like(times.end)
    steps: list[tuple[int, int, Ints]] = []  # from, to, and the longest way with this step
    for at in range(count - 1, -1, -1):
        behind = plan.downstream[at]
        if len(behind):
            # As in _forward: a step is one if the task can have waited for it.
            starts = times.end[behind] - times.own[behind]
            possible = ~ran[behind] | (times.end[at] <= starts + CLOCKS_US)
            ways = np.where(possible, rest[behind], _NEVER)
            tail[at] = np.maximum(ways.max(axis=0), 0)
            steps += [
                (at, to, ways[row] + times.end[at])
                for row, to in enumerate(behind.tolist())
                if to > at + 1
            ]
        rest[at] = times.wait[at] + times.own[at] + tail[at]
    avoiding = _passing_over(steps, count, runs)
    # A way may begin with any task behind a position, and end with any before it.
    if count > 1:
        np.maximum(avoiding[:-1], np.maximum.accumulate(rest[:0:-1])[::-1], out=avoiding[:-1])
        np.maximum(avoiding[1:], np.maximum.accumulate(times.end[:-1]), out=avoiding[1:])
    np.maximum(avoiding, 0, out=avoiding)
    longest = np.where(ran, times.end, 0).max(axis=0)
    return np.asarray(np.minimum(times.own, np.maximum(longest - avoiding, 0)))


def _passing_over(steps: Sequence[tuple[int, int, Ints]], count: int, runs: int) -> Ints:
    """Return for each position the longest way with a step from before it to behind it.

    Steps go into tables for stretches of 1, 2, 4 … positions, two in each that cover theirs; then
    each table goes into that of half its length.
    """
    levels: list[Ints] = []
    for start, end, ways in steps:
        first, length = start + 1, end - start - 1
        level = length.bit_length() - 1
        while len(levels) <= level:
            levels.append(np.full((count, runs), _NEVER))
        for place in (first, first + length - (1 << level)):
            np.maximum(levels[level][place], ways, out=levels[level][place])
    for level in range(len(levels) - 1, 0, -1):
        half = 1 << (level - 1)
        upper, lower = levels[level], levels[level - 1]
        np.maximum(lower, upper, out=lower)
        np.maximum(lower[half:], upper[:-half], out=lower[half:])
    return levels[0] if levels else np.full((count, runs), _NEVER)


def _array(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)
