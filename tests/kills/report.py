"""The results of cases as tables for people."""

from collections.abc import Mapping, Sequence

from tests.kills.conduct import Result
from tests.kills.plan import Phase, Target


def render(results: Sequence[Result], labels: Mapping[str, str]) -> str:
    """Return what was found, as Markdown. ``labels``: how the kinds are called, in their order."""
    parts = [_by_kind(results, labels), _by_target(results), _offences(results)]
    return "\n\n".join(part for part in parts if part)


def _by_kind(results: Sequence[Result], labels: Mapping[str, str]) -> str:
    lines = [
        "| Task | Cases | Killed | With a live job | Attempts, LOST | Doubles | Left over "
        "| Other offences | Runner: gone | Stop: gone | Longest until gone |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind, label in labels.items():
        some = [result for result in results if result.kind == kind]
        if some:
            lines.append(_line(label, some))
    return "\n".join(lines)


def _line(label: str, some: Sequence[Result]) -> str:
    attempts = [attempt["state"] for result in some for attempt in result.attempts]
    others = [
        text
        for result in some
        for text in result.offences
        if not text.startswith(("two live jobs", "left over"))
    ]
    cells = [
        label,
        len(some),
        sum(bool(result.killed) for result in some),
        sum(result.live and bool(result.killed) for result in some),
        f"{len(attempts)}, {attempts.count('LOST')}",
        sum(bool(result.doubles) for result in some),
        sum(bool(result.left) for result in some),
        len(others),
        _longest(some, Target.RUNNER),
        _stops(some),
        _longest(some),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def _longest(some: Sequence[Result], target: Target | None = None) -> str:
    times = [
        result.gone_s
        for result in some
        if result.gone_s is not None
        and result.alone
        and (result.target == target if target else result.target != Target.MASTER)
    ]
    return f"{max(times):.2f} s of {len(times)}" if times else "–"


def _stops(some: Sequence[Result]) -> str:
    """Return the longest times of those that end willingly, and of those that do not."""
    parts = []
    for stubborn, word in ((False, ""), (True, ", stubborn ")):
        of = [result for result in some if result.stubborn is stubborn]
        if (longest := _longest(of, Target.CANCEL)) != "–":
            parts.append(word + longest)
    return "".join(parts).removeprefix(", ") or "–"


def _by_target(results: Sequence[Result]) -> str:
    lines = [
        f"| Killed | {' | '.join(Phase)} | too late |",
        f"| --- |{' ---: |' * (len(Phase) + 1)}",
    ]
    for target in Target:
        of = [result for result in results if result.target == target]
        counts = [sum(r.phase == phase and bool(r.killed) for r in of) for phase in Phase]
        late = sum(not result.killed for result in of)
        lines.append(f"| {target} | {' | '.join(map(str, counts))} | {late} |")
    return "\n".join(lines)


def _offences(results: Sequence[Result]) -> str:
    lines = [
        f"- {result.kind}:{result.number} ({result.target}, {result.phase},"
        f" run {result.instance}): {text}"
        for result in results
        for text in result.offences
    ]
    return "Offences:\n\n" + "\n".join(lines) if lines else "No offences."
