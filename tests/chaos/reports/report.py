"""The report of one run of the fault suite, as Markdown."""

import os
import platform
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isinf
from pathlib import Path

from tests.chaos.judging.verdict import Kind, Verdict
from tests.chaos.records import FaultRecord
from tests.chaos.reports.figures import FIGURES, Figure, percentile, recoveries, takeovers

MOST_OFFENCES = 100
STALL = "machine-stall"
_BUCKETS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)  # upper bounds, in session timeouts
_BAR = 40  # characters


def commit() -> str:
    """Return the commit of the tree, marked if there are changes beside it; "" outside of git."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
        )
    except OSError:
        return ""
    return done.stdout.strip()


def _machine() -> str:
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.release()}"
    return f"{cores} cores, {system}, Python {platform.python_version()}"


@dataclass(frozen=True)
class RunInfo:
    """What was run, and where."""

    seed: int
    duration_s: float
    session_timeout_s: float
    commit: str
    command: str = "make chaos"
    machine: str = field(default_factory=_machine)


def render(verdict: Verdict, faults: Sequence[FaultRecord], info: RunInfo) -> str:
    """Return the whole report. Stalls of the machine are not faults, and are told apart."""
    stalls = [fault for fault in faults if fault.name == STALL]
    faults = [fault for fault in faults if fault.name != STALL]
    parts = [
        _head(verdict, faults, info),
        _stalls(stalls),
        _offences(verdict),
        _figures(verdict, faults, info),
        _faults(faults),
        _histogram(faults, info),
        _counts(verdict),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _head(verdict: Verdict, faults: Sequence[FaultRecord], info: RunInfo) -> str:
    found = verdict.by_kind
    result = "**clean**" if verdict.is_clean else f"**{len(verdict.offences)} offences**"
    bit = sum(fault.bit for fault in faults)
    lines = [
        f"`{info.command}`, seed {info.seed}: {result}, {len(faults)} faults, of which {bit} bit, "
        f"in {info.duration_s / 60:.1f} minutes.",
        f"Session timeout T = {info.session_timeout_s:g} s. {info.machine}."
        + (f" Commit {info.commit}." if info.commit else ""),
    ]
    if verdict.is_clean and faults:
        lines.append(
            f"No offence in {len(faults)} faults: with 95 % confidence fewer than "
            f"{min(1.0, 3 / len(faults)):.2%} of such faults cause one."
        )
    kinds = [kind for kind in Kind if kind is not Kind.BLIND or found[kind]]
    return "\n".join(lines) + "\n\n" + _table(kinds, [[str(found[kind]) for kind in kinds]])


def _stalls(stalls: Sequence[FaultRecord]) -> str:
    if not stalls:
        return ""
    lengths = [fault.healed_s - fault.began_s for fault in stalls]
    return (
        f"The machine itself stood still {len(stalls)} times, {sum(lengths):.1f} s together, "
        f"at most {max(lengths):.1f} s: attempts may be LOST by that as by a fault."
    )


def _offences(verdict: Verdict) -> str:
    lines = [f"- {offence}" for offence in verdict.offences[:MOST_OFFENCES]]
    if left := len(verdict.offences) - len(lines):
        lines.append(f"- and {left} more")
    return "\n".join(lines)


# -- figures ----------------------------------------------------------------------------------


def _figures(verdict: Verdict, faults: Sequence[FaultRecord], info: RunInfo) -> str:
    rows = []
    for figure in FIGURES:
        records = figure.records(faults)
        if records:
            bit = sum(record.bit for record in records)
            rows.append(
                [
                    figure.id,
                    figure.target,
                    _measured(figure, verdict, records),
                    str(len(records)),
                    str(bit),
                    _result(figure, verdict, records, info),
                ]
            )
    return _table(["", "target", "measured", "faults", "bit", ""], rows) if rows else ""


def _result(figure: Figure, verdict: Verdict, records: Sequence[FaultRecord], info: RunInfo) -> str:
    if not is_met(figure, verdict, records, info):
        return "**missed**"
    timed = figure.times(verdict, records) or isinf(figure.bound_s(info.session_timeout_s))
    return "met" if timed else "met, not timed"


def is_met(figure: Figure, verdict: Verdict, records: Sequence[FaultRecord], info: RunInfo) -> bool:
    """Say whether a figure's target is reached: nothing wrong, nothing left broken, in time."""
    if not verdict.is_clean or any(record.recovered_s is None for record in records):
        return False
    times = figure.times(verdict, records)
    bound_s = figure.bound_s(info.session_timeout_s)
    return not times or percentile(times, figure.quantile) <= bound_s


def _measured(figure: Figure, verdict: Verdict, records: Sequence[FaultRecord]) -> str:
    never = sum(record.recovered_s is None for record in records)
    text = f"{figure.timed} {_times(figure.times(verdict, records))}"
    return f"{text}; {never} never whole again" if never else text


def _times(values: Sequence[float]) -> str:
    if not values:
        return "–"
    p50, p99 = percentile(values, 0.5), percentile(values, 0.99)
    return f"p50 {p50:.2f} s, p99 {p99:.2f} s, max {max(values):.2f} s"


# -- faults -----------------------------------------------------------------------------------


def _faults(faults: Sequence[FaultRecord]) -> str:
    by_name: dict[str, list[FaultRecord]] = defaultdict(list)
    for fault in faults:
        by_name[fault.name].append(fault)
    rows = [
        [
            name,
            str(len(records)),
            str(sum(record.bit for record in records)),
            _times(recoveries(None, records)),
            _times(takeovers(None, records)),
        ]
        for name, records in sorted(by_name.items())
    ]
    head = ["fault", "injected", "bit", "whole again after its end", "partitions taken over"]
    note = "Times are of faults that came alone; some came together with another one."
    return f"{_table(head, rows)}\n\n{note}" if rows else ""


def _histogram(faults: Sequence[FaultRecord], info: RunInfo) -> str:
    times = [fault.recovery_s for fault in faults if fault.recovery_s is not None]
    if not times:
        return ""
    lines = list(_bars([time_s / info.session_timeout_s for time_s in times]))
    return "Recovery after the end of a fault, in T:\n\n```text\n" + "\n".join(lines) + "\n```"


def _bars(values: Sequence[float]) -> Iterator[str]:
    bounds = [0.0, *_BUCKETS, float("inf")]
    counted = [sum(low <= value < high for value in values) for low, high in pairwise(bounds)]
    for (low, high), number in zip(pairwise(bounds), counted, strict=True):
        bar = "#" * round(_BAR * number / max(counted))
        yield f"{low:5.2f} – {high:5.2f}  {number:5d}  {bar}".rstrip()


def _counts(verdict: Verdict) -> str:
    rows = [[name, str(number)] for name, number in verdict.counts.items()]
    return _table(["what was judged", ""], rows) if rows else ""
