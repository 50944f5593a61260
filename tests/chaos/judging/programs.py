"""Programs from the resource centre: each attempt runs the version of its run's beginning."""

from collections.abc import Iterator, Sequence

from tests.chaos.judging.evidence import Evidence
from tests.chaos.judging.verdict import Kind, Offence
from tests.chaos.workload.workload import Edit

# How far the cluster's clock and that of the edits may be apart.
CLOCK_SLACK_S = 1.0
# Commands after which the newest version counts.
_RESTARTS = frozenset({"RESUME", "RECOVER"})


def judge(evidence: Evidence) -> Iterator[Offence]:
    """Yield attempts that ran another version, in instances that went on by themselves."""
    began_s = {
        change.instance: change.at_s
        for change in evidence.changes
        if change.task is None and change.previous is None
    }
    restarted = {one.instance_id for one in evidence.commands if one.type in _RESTARTS}
    for run in evidence.runs:
        row = run.start
        at_s = began_s.get(row.instance)
        if row.program == 0 or at_s is None or row.instance in restarted:
            continue
        possible = _versions(evidence.edits, at_s)
        if row.program not in possible:
            text = f"ran version {row.program}; when its run began it was {possible}"
            yield Offence(
                Kind.ILLEGAL, "program of the beginning", text, row.instance, row.task, row.attempt
            )


def judged(evidence: Evidence) -> int:
    """Count the runs whose program was a resource."""
    return sum(run.start.program > 0 for run in evidence.runs)


def _versions(edits: Sequence[Edit], at_s: float) -> list[int]:
    """Return the versions that may have been the newest one at a time."""
    done = [edit.version for edit in edits if edit.ended_s < at_s - CLOCK_SLACK_S]
    begun = [edit.version for edit in edits if edit.began_s <= at_s + CLOCK_SLACK_S]
    return [version for version in begun if version >= max(done, default=0)]
