"""The outcome as a Markdown table, for people and for the report of the fault suite."""

from collections.abc import Sequence

from tests.mutations.running import Result
from tests.mutations.verdict import Verdict


def render(results: Sequence[Result]) -> str:
    """Return the table and a line that sums it up."""
    lines = [
        "| Safety check taken out | Promise broken | Verdict | Noticed by | s |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [_line(result) for result in results]
    return "\n".join([*lines, "", summary(results)])


def summary(results: Sequence[Result]) -> str:
    """Return one line: how many there were, and how many were not noticed."""
    alive = [result for result in results if result.verdict is not Verdict.KILLED]
    verdict = f"{len(alive)} NOT noticed" if alive else "every one noticed"
    return f"{len(results)} safety checks taken out, {verdict}"


def _line(result: Result) -> str:
    if result.verdict is Verdict.KILLED:
        noticed = f"`{result.why.partition(': ')[0].rpartition('/')[2]}`"
    else:
        noticed = result.why
    cells = [
        result.mutation.name,
        result.mutation.breaks.value,
        result.verdict.value,
        noticed,
        f"{result.took_s:.1f}",
    ]
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
