"""What a cluster occupies: memory by kind of process, disk by store; and whether that grows."""

import os
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bench.support import processes

MIB = 1 << 20
# Growth over the watched part that is taken for noise: a share of the level, or so many bytes; of
# rows that are purged now and then, twice their standard deviation around the line.
FLAT_SHARE, FLAT_BYTES = 0.05, 4 * MIB
MEMORY, SHARED, DISK, ROWS = "memory", "shared", "disk", "rows"
RATE_S = 30.0
# What the server itself cleans once an hour (autopurge), so that minutes show nothing of it.
HOURLY = ("disk: ZooKeeper",)


@dataclass(frozen=True)
class Sample:
    """Levels at a moment: bytes, or rows, by name; ``runs`` had been started until then."""

    at_s: float
    runs: int
    levels: Mapping[str, float]
    bounds: Mapping[str, float] = field(default_factory=dict)  # of those that have one


@dataclass(frozen=True)
class Trend:
    """How a level moved over the watched part."""

    name: str
    first: float  # level at its beginning and end, by the fitted line
    last: float
    highest: float
    per_run: float  # the line's slope
    bound: float | None = None  # more it cannot become, as things stood at its beginning
    swing: float = 0.0  # of what is purged now and then: how far it is off its line, as a rule

    @property
    def grows(self) -> bool:
        """Whether it gains what nothing bounds."""
        return not self.is_flat and not self.is_bounded

    @property
    def is_bounded(self) -> bool:
        """Whether it has a bound and is within it."""
        return self.bound is not None and self.highest <= self.bound

    @property
    def is_flat(self) -> bool:
        """Whether what was gained is noise: beside the level, or at all."""
        gained = self.last - self.first
        noise = max(FLAT_SHARE * self.first, FLAT_BYTES * self._unit, 2.0 * self.swing)
        return gained <= noise

    @property
    def _unit(self) -> float:
        return 1.0 if not self.name.startswith(ROWS) else 1_000 / FLAT_BYTES


def memory() -> tuple[dict[str, float], dict[str, float]]:
    """Return the memory of everything below this process, by kind, and the bounds of what has any.

    Private and shared pages are levels of their own, so that the one does not hide the other.
    """
    used = processes.memory(os.getpid())
    levels = {f"{MEMORY}: {kind}": float(one.private) for kind, one in used.items()}
    levels |= {f"{SHARED}: {kind}": float(one.shared) for kind, one in used.items()}
    return levels, {f"{SHARED}: {kind}": float(one.bound) for kind, one in used.items()}


def size_of(paths: Iterable[Path]) -> float:
    """Return the bytes on disk of files, and of all files below folders."""
    total = 0
    for path in paths:
        with suppress(OSError):
            total += path.lstat().st_blocks * 512
        for folder, _, names in os.walk(path):
            for name in names:
                with suppress(OSError):
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return float(total)


def trends(samples: Sequence[Sample], kept: Collection[str] = ()) -> list[Trend]:
    """Return the trend of every level; of ``kept``, what it would be at an even rate of runs."""
    names = sorted({name for sample in samples for name in sample.levels})
    return [_trend(name, samples, kept) for name in names]


def at_even_rate(samples: Sequence[Sample], levels: Sequence[float]) -> list[float]:
    """Return what ``levels`` would be if runs had come at their mean rate.

    What is kept for a time is as many as come in it, so it follows the rate of the last
    ``RATE_S`` seconds, which other work on the machine changes by a factor of two.
    """
    mean = _rate(samples[0], samples[-1])
    found = []
    for at, (sample, level) in enumerate(zip(samples, levels, strict=True)):
        window = [one for one in samples[: at + 1] if sample.at_s - one.at_s <= RATE_S]
        rate = _rate(window[0], sample)
        found.append(level * mean / rate if rate else level)
    return found


def _rate(first: Sample, last: Sample) -> float:
    spent_s = last.at_s - first.at_s
    return (last.runs - first.runs) / spent_s if spent_s else 0.0


def _trend(name: str, samples: Sequence[Sample], kept: Collection[str]) -> Trend:
    runs = [float(sample.runs) for sample in samples]
    levels = [sample.levels.get(name, 0.0) for sample in samples]
    if name in kept:
        levels = at_even_rate(samples, levels)
    bound = samples[0].bounds.get(name)
    if len(set(runs)) < 2:
        return Trend(name, levels[0], levels[-1], max(levels), 0.0, bound)
    slope, _ = statistics.linear_regression(runs, levels)
    middle, mean = statistics.fmean(runs), statistics.fmean(levels)
    first, last = (mean + slope * (at - middle) for at in (runs[0], runs[-1]))
    swing = 0.0
    if name in kept:
        line = [mean + slope * (at - middle) for at in runs]
        swing = statistics.pstdev(n - at for n, at in zip(levels, line, strict=True))
    return Trend(name, first, last, max(levels), slope, bound, swing)


def markdown(found: Sequence[Trend], watched: Sequence[Sample]) -> str:
    """Return the trends as a table, and in words what they are of."""
    runs = watched[-1].runs - watched[0].runs
    spent_s = watched[-1].at_s - watched[0].at_s
    lines = [
        "| what | at first | at the end | highest | per run | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one.name} | {_level(one, one.first)} | {_level(one, one.last)} |"
        f" {_level(one, one.highest)} | {_slope(one)} | {verdict(one)} |"
        for one in found
    ]
    rate = runs / spent_s if spent_s else 0.0
    lines.append(f"\n{runs:,} runs in {spent_s:.0f} s were watched ({rate:.0f} a second).")
    return "\n".join(lines) + "\n"


def verdict(one: Trend) -> str:
    """Return whether it is flat, in a word."""
    if one.name in HOURLY:
        return "cleaned hourly"
    if one.is_flat:
        return "flat"
    return f"at most {_level(one, one.bound)}" if one.bound and one.is_bounded else "**grows**"


def _level(one: Trend, level: float) -> str:
    return f"{level:,.0f}" if one.name.startswith(ROWS) else f"{level / MIB:,.1f} MiB"


def _slope(one: Trend) -> str:
    return f"{one.per_run:+.3f}" if one.name.startswith(ROWS) else f"{one.per_run:+.1f} B"


def steps(samples: Sequence[Sample]) -> list[float]:
    """Return how many runs a second were started between the samples."""
    return [(b.runs - a.runs) / (b.at_s - a.at_s) for a, b in pairwise(samples)]
