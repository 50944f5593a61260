"""The independent checker: what the tasks, the database and the machine say about one another."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.chaos.cluster.database import gather
from tests.chaos.cluster.queries import connected
from tests.chaos.judging import (
    alerts,
    commands,
    composed,
    graphs,
    handing_over,
    leaks,
    logs,
    programs,
    runs,
    states,
    waits,
)
from tests.chaos.judging.evidence import Evidence
from tests.chaos.judging.logs import CopyReader, LogReader
from tests.chaos.judging.verdict import Kind, Offence, Verdict
from tests.chaos.records import FaultRecord
from tests.chaos.reports.figures import LOSS_DELAY, STOP_DELAY
from tests.chaos.workload.ledger import Row
from tests.chaos.workload.workload import Asked, Edit

MOST_LOGS = 600  # each is a request


def check(
    database_url: str,
    ledger_rows: Sequence[Row],
    log_reader: LogReader | None,
    faults: Sequence[FaultRecord],
    *,
    asked: Sequence[Asked] = (),
    edits: Sequence[Edit] = (),
    archived: CopyReader | None = None,
    resources: Path | None = None,
    marker: str | None = None,
    zookeeper: str | None = None,
    told: Mapping[str, int] | None = None,
    session_timeout_s: float = 10.0,
) -> Verdict:
    """Judge a cluster at rest: every instance should have ended.

    ``log_reader`` None: logs are not looked at; ``archived`` None: nor is their archive.
    ``resources``: the folder of their contents; None: it is not looked at. ``marker`` None: nor are
    processes. ``zookeeper`` None: nor is what is left there. ``told``: how often each message about
    alerts arrived, by its key; None: nor are those.
    """
    found = gather(database_url, ledger_rows, faults, asked, session_timeout_s)
    evidence = replace(found, edits=edits)
    offences = list(judge(evidence))
    if log_reader is not None:
        offences += logs.judge(evidence, log_reader, MOST_LOGS, archived)
    if resources is not None:
        offences += handing_over.judge_contents(evidence, resources)
    if marker is not None:
        offences += leaks.survivors(marker, ledger_rows)
    if zookeeper is not None:
        offences += leaks.entries(zookeeper)
    if told is not None:
        offences += alerts.judge(database_url, told)
    samples: dict[str, Sequence[float]] = {
        LOSS_DELAY: runs.loss_delays(evidence),
        STOP_DELAY: commands.stop_delays(evidence),
    }
    with connected(database_url) as select:
        samples |= waits.waits(select)
    return Verdict(offences, counts(evidence), samples)


def judge(evidence: Evidence) -> Iterator[Offence]:
    """Yield every offence that the evidence shows by itself."""
    for what, items in (
        ("instances in the database", evidence.instances),
        ("runs in the ledger", evidence.runs),
        ("acknowledged commands", [a for a in evidence.asked if a.acknowledged]),
    ):
        if not items:
            yield Offence(Kind.BLIND, "something was done", f"there are no {what}")
    for part in (commands, runs, states, graphs, composed, programs, handing_over):
        yield from part.judge(evidence)


def counts(evidence: Evidence) -> dict[str, int]:
    """Return what was judged, by name."""
    states = Counter(attempt.state for attempt in evidence.attempts)
    instances = Counter(instance.state for instance in evidence.instances.values())
    return {
        "commands acknowledged": sum(asked.acknowledged for asked in evidence.asked),
        "commands in the database": len(evidence.commands),
        "fired by schedules": sum(c.schedule_id is not None for c in evidence.commands),
        "instances": len(evidence.instances),
        "nested instances": sum(i.parent is not None for i in evidence.instances.values()),
        "backfills": len(evidence.backfills),
        **{f"instances {state}": number for state, number in sorted(instances.items())},
        "attempts": len(evidence.attempts),
        **{f"attempts {state}": number for state, number in sorted(states.items())},
        "runs in the ledger": len(evidence.runs),
        "runs of a program in versions": programs.judged(evidence),
        "files handed over": handing_over.judged(evidence),
        "runs that were killed": sum(not run.completed for run in evidence.runs),
        "re-runs": runs.completed_again(evidence),
        "overlaps with frozen nodes": runs.frozen_overlaps(evidence),
        "changes of state": len(evidence.changes),
        "committed changes seen by triggers": len(evidence.steps),
        "changes of epochs": sum(step.table == "partition" for step in evidence.steps),
    }
