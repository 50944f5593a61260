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
from tests.chaos.judging.waits import PREFIX
from tests.chaos.records import STALL, FaultRecord
from tests.chaos.reports.figures import FIGURES, Figure, percentile, recoveries, takeovers
from tests.chaos.reports.parts import Result

MOST_OFFENCES = 100
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


def render(result: Result, info: RunInfo) -> str:
    """Return the whole report. Stalls of the machine are not faults and are listed separately."""
    verdict, faults = result.verdict, result.injected
    stalls = [fault for fault in result.outcome.records if fault.name == STALL]
    parts = [
        _head(result, info),
        _stalls(stalls),
        _offences(verdict),
        _figures(verdict, faults, info),
        _faults(faults),
        _histogram(faults, info),
        _waits(verdict),
        _counts(verdict),
        _notes(result),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _head(result: Result, info: RunInfo) -> str:
    verdict, faults, found = result.verdict, result.injected, result.verdict.by_kind
    said = "**clean**" if result.is_clean else f"**not clean** ({', '.join(_wrong(result))})"
    bit = sum(fault.bit for fault in faults)
    lines = [
        f"`{info.command}`, seed {info.seed}: {said}, {len(faults)} faults, of which {bit} bit, "
        f"in {info.duration_s / 60:.1f} minutes.",
        f"Session timeout T = {info.session_timeout_s:g} s. {info.machine}."
        + (f" Commit {info.commit}." if info.commit else ""),
    ]
    if verdict.is_clean and bit:
        lines.append(
            f"No offence in {bit} faults with an effect: with 95 % confidence fewer than "
            f"{min(1.0, 3 / bit):.2%} of such faults cause one."
        )
    kinds = [kind for kind in Kind if kind is not Kind.BLIND or found[kind]]
    return "\n".join(lines) + "\n\n" + _table(kinds, [[str(found[kind]) for kind in kinds]])


def _wrong(result: Result) -> list[str]:
    """Return what keeps a run from being clean, each kind with its number."""
    numbers = {
        "offences": len(result.verdict.offences),
        "times in trouble": len(result.outcome.trouble),
        "processes left": len(result.leftovers),
        "instances open": len(result.open_instances),
        "targets missed": len(result.missed),
        "faults skipped": len(result.outcome.skipped),
        "faults without effect": len(result.harmless),
    }
    return [f"{number} {name}" for name, number in numbers.items() if number]


def _notes(result: Result) -> str:
    """Return what the report's tables do not say."""
    parts = {
        "Trouble": result.outcome.trouble,
        "Processes that outlived their role": result.leftovers,
        "Instances that did not end": [str(number) for number in result.open_instances],
        "Roles that ended by themselves and were restarted": result.exits,
        "Skipped": result.outcome.skipped,
        "Without an effect that could be shown": [
            f"{fault.name} {fault.target}: {fault.evidence}" for fault in result.harmless
        ],
    }
    return "\n\n".join(
        f"{title}:\n\n" + "\n".join(f"- {line}" for line in lines)
        for title, lines in parts.items()
        if lines
    )


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
    if not figure.is_met(verdict, records, info.session_timeout_s):
        return "**missed**"
    timed = figure.times(verdict, records) or isinf(figure.bound_s(info.session_timeout_s))
    return "met" if timed else "met, not timed"


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


def _waits(verdict: Verdict) -> str:
    rows = [
        [name.removeprefix(PREFIX), str(len(samples)), _times(samples)]
        for name, samples in sorted(verdict.samples.items())
        if name.startswith(PREFIX) and samples
    ]
    return _table(["what each project waited for", "times", ""], rows) if rows else ""


def _counts(verdict: Verdict) -> str:
    rows = [[name, str(number)] for name, number in verdict.counts.items()]
    return _table(["what was judged", ""], rows) if rows else ""
