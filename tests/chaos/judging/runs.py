"""The ledger against the database: what ran, how often, when, and with what result."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tests.chaos.judging.evidence import FINAL_TASK, Attempt, Change, Evidence
from tests.chaos.judging.verdict import Kind, Offence
from tests.chaos.records import FaultRecord
from tests.chaos.workload.ledger import Row, Run, overlaps
from tests.chaos.workload.task import FAILED as ASKED_FOR

# How long after the cluster is whole again the last attempt may be found to be lost.
LOSS_SLACK_S = 30.0
# How far the clocks of the database's rows and of the ledger may seem to be apart.
CLOCK_SLACK_S = 0.1
# States in which an attempt's process may be at work, or have been.
_HELD = frozenset({"CLAIMED", "RUNNING", "SUCCEEDED", "FAILED", "KILLED", "LOST"})


def judge(evidence: Evidence) -> Iterator[Offence]:
    """Yield what the tasks' own account says against the scheduler."""
    yield from _concurrent(evidence)
    yield from _one_process_each(evidence)
    yield from _known(evidence)
    yield from _results(evidence)
    yield from _founded(evidence)
    yield from _losses_explained(evidence)
    yield from _epochs(evidence)
    yield from _dead_at_its_end(evidence)
    yield from _nothing_starts_blind(evidence)


def completed_again(evidence: Evidence) -> int:
    """Count runs that came to their end, were given up as lost, and were done again."""
    return sum(
        first.completed and evidence.attempt_by_id[first.start.task_instance_id].state == "LOST"
        for of_task in evidence.runs_of_task.values()
        for first, _ in pairwise(of_task)
        if first.start.task_instance_id in evidence.attempt_by_id
    )


def loss_delays(evidence: Evidence) -> list[float]:
    """Return how long after a worker was killed each of its attempts was given up, in seconds.

    What had not run by then is not of that worker for sure.
    """
    hurts = [fault for fault in evidence.faults if fault.costs_workers]
    windows = {id(fault): _window(fault, evidence.faults) for fault in hurts}
    delays = []
    for change, started_s in _losses(evidence):
        causes = [
            fault
            for fault in hurts
            if fault.began_s <= change.at_s <= windows[id(fault)][1]
            and started_s <= _end_s(fault) + CLOCK_SLACK_S
        ]
        last = max(causes, key=lambda fault: fault.began_s, default=None)
        if last is not None and last.name.startswith("kill-worker"):
            delays.append(change.at_s - last.began_s)
    return delays


def frozen_overlaps(evidence: Evidence) -> int:
    """Count duplicates of runs that were frozen with their whole node: bounded, not avoidable."""
    met = {row.task_instance_id for row in evidence.duplicates if _met_frozen(evidence, row)}
    for of_task in evidence.runs_of_task.values():
        for _, second in overlaps(of_task):
            if _met_frozen(evidence, second.start):
                met.add(second.start.task_instance_id)
    return len(met)


def _offence(kind: Kind, rule: str, row: Row, text: str) -> Offence:
    return Offence(kind, rule, text, row.instance, row.task, row.attempt)


def _concurrent(evidence: Evidence) -> Iterator[Offence]:
    for row in evidence.duplicates:
        if not _met_frozen(evidence, row):
            text = f"process {row.pid} found another run alive at {row.boot_ns} ns"
            yield _offence(Kind.DUPLICATE, "lock of the task", row, text)
    for of_task in evidence.runs_of_task.values():
        for first, second in overlaps(of_task):
            assert first.end is not None
            if _met_frozen(evidence, second.start):
                continue
            text = (
                f"started at {second.start.boot_ns} ns, before attempt {first.start.attempt} "
                f"ended at {first.end.boot_ns} ns"
            )
            yield _offence(Kind.DUPLICATE, "overlapping runs", second.start, text)


def _met_frozen(evidence: Evidence, row: Row) -> bool:
    frozen = _frozen_pids(evidence)
    others = evidence.runs_of_task.get((row.instance, row.task), ())
    return any(run.start.pid in frozen and run.start.pid != row.pid for run in others)


def _frozen_pids(evidence: Evidence) -> set[int]:
    return {pid for fault in evidence.faults for pid in fault.frozen_pids}


def _one_process_each(evidence: Evidence) -> Iterator[Offence]:
    for of_attempt in evidence.runs_of.values():
        for run in of_attempt[1:]:
            text = f"the same attempt was started {len(of_attempt)} times"
            yield _offence(Kind.RERUN, "one process for an attempt", run.start, text)


def _known(evidence: Evidence) -> Iterator[Offence]:
    """Every process belongs to an attempt that a worker was given."""
    claimed = {
        (change.instance, change.task, change.attempt)
        for change in evidence.changes
        if change.state == "CLAIMED"
    }
    for run in evidence.runs:
        row = run.start
        stored = evidence.attempt_by_id.get(row.task_instance_id)
        key = (row.instance, row.task, row.attempt)
        if stored is None or (stored.instance, stored.task, stored.number) != key:
            text = f"task instance {row.task_instance_id} is {stored} in the database"
            yield _offence(Kind.ILLEGAL, "run without attempt", row, text)
        elif key not in claimed or stored.state not in _HELD:
            text = f"ran, but was never claimed; it is {stored.state}"
            yield _offence(Kind.ILLEGAL, "run without claim", row, text)


def _results(evidence: Evidence) -> Iterator[Offence]:
    """A result in the database is what the process said."""
    for attempt in evidence.attempts:
        task = evidence.task_of(attempt)
        if task is not None and task.children is not None:
            continue  # no process: its children say how it ends
        said = [run.exit for run in evidence.runs_of.get(attempt.id, ())]
        if attempt.state == "SUCCEEDED" and (0 not in said or attempt.exit_code != 0):
            yield _of(
                attempt, Kind.LOST, "success without work", f"its runs ended with {said or 'none'}"
            )
        elif attempt.state == "FAILED":
            yield from _failure(evidence, attempt, said)


def _failure(evidence: Evidence, attempt: Attempt, said: list[int | None]) -> Iterator[Offence]:
    if said and said[-1] == attempt.exit_code == ASKED_FOR:
        return
    if _timed_out(evidence, attempt) or any(fault.spoils_disk for fault in evidence.faults):
        return
    text = (
        f"recorded with exit code {attempt.exit_code} ({attempt.reason}); "
        f"its runs ended with {said or 'none'}"
    )
    yield _of(attempt, Kind.ILLEGAL, "failure that was none", text)


def _timed_out(evidence: Evidence, attempt: Attempt) -> bool:
    timeout_s = evidence.instances[attempt.instance].tasks[attempt.task].timeout
    return timeout_s is not None and attempt.reason.startswith("timed out")


def _of(attempt: Attempt, kind: Kind, rule: str, text: str) -> Offence:
    return Offence(kind, rule, text, attempt.instance, attempt.task, attempt.number)


def _founded(evidence: Evidence) -> Iterator[Offence]:
    """A task runs again only after an attempt that is recorded as failed, killed or lost."""
    for of_task in evidence.runs_of_task.values():
        for first, second in pairwise(of_task):
            before = evidence.attempt_by_id.get(first.start.task_instance_id)
            if second.start.attempt <= first.start.attempt:
                text = f"started after attempt {first.start.attempt}"
                yield _offence(Kind.ILLEGAL, "attempts in order", second.start, text)
            elif before is not None and before.state not in ("FAILED", "KILLED", "LOST"):
                text = f"attempt {before.number} is {before.state}"
                yield _offence(Kind.RERUN, "reason to run again", second.start, text)


def _losses_explained(evidence: Evidence) -> Iterator[Offence]:
    """A worker is given up only if something was done to it while it ran the attempt."""
    hurts = [fault for fault in evidence.faults if fault.costs_workers]
    windows = [(*_window(fault, evidence.faults), _end_s(fault)) for fault in hurts]
    for change, started_s in _losses(evidence):
        if not any(
            from_s <= change.at_s <= until_s and started_s <= healed_s + CLOCK_SLACK_S
            for from_s, until_s, healed_s in windows
        ):
            text = (
                f"LOST at {change.at_s:.3f} s, started at {started_s:.3f} s, when nothing had hurt "
                "a worker"
            )
            yield Offence(
                Kind.RERUN,
                "reason to be lost",
                text,
                change.instance,
                change.task,
                change.attempt,
            )


def _losses(evidence: Evidence) -> Iterator[tuple[Change, float]]:
    """Yield the attempts that were given up, and when they had been started.

    An attempt that has never run may be LOST without a reason: its worker lets go of a claim for
    which no master has answered in time, and the master that had granted it cannot tell this from
    a loss.
    """
    started = {
        (run.start.instance, run.start.task, run.start.attempt): run.start.boot_ns / 1e9
        for run in evidence.runs
    }
    for change in evidence.changes:
        started_s = started.get((change.instance, change.task or "", change.attempt or 0))
        if change.state == "LOST" and started_s is not None:
            yield change, started_s


def _window(fault: FaultRecord, faults: Sequence[FaultRecord]) -> tuple[float, float]:
    """Return from when until when the losses that a fault has caused may be stored.

    Not while the database answers nobody, or too slowly: what is found then is stored afterwards.
    """
    end_s = _end_s(fault) + LOSS_SLACK_S
    for other in sorted(faults, key=lambda one: one.began_s):
        if fault.began_s <= other.began_s <= end_s and _holds_storing_up(other):
            end_s = max(end_s, _end_s(other) + LOSS_SLACK_S)
    return fault.began_s, end_s


def _end_s(fault: FaultRecord) -> float:
    return fault.healed_s if fault.recovered_s is None else fault.recovered_s


def _holds_storing_up(fault: FaultRecord) -> bool:
    return "database" in fault.name or "postgresql" in fault.name


def _epochs(evidence: Evidence) -> Iterator[Offence]:
    """The epochs that runs were given never fall, and are none of the future."""
    for of_task in evidence.runs_of_task.values():
        for first, second in pairwise(of_task):
            if second.start.epoch < first.start.epoch:
                text = f"epoch {second.start.epoch} after {first.start.epoch}"
                yield _offence(Kind.ILLEGAL, "epochs of runs", second.start, text)
        yield from _beyond(evidence, of_task[-1])


def _beyond(evidence: Evidence, run: Run) -> Iterator[Offence]:
    instance = evidence.instances.get(run.start.instance)
    newest = None if instance is None else evidence.epochs.get(instance.partition)
    if newest is not None and run.start.epoch > newest:
        text = f"epoch {run.start.epoch}, but its partition has only come to {newest}"
        yield _offence(Kind.ILLEGAL, "epochs of runs", run.start, text)


def _dead_at_its_end(evidence: Evidence) -> Iterator[Offence]:
    """When an attempt's end is recorded, nothing of it is alive: nothing writes rows."""
    frozen = _frozen_pids(evidence)
    ends = {
        (change.instance, change.task, change.attempt): change.at_s
        for change in evidence.changes
        if change.task is not None and change.state in FINAL_TASK
    }
    for row in evidence.rows:
        end_s = ends.get((row.instance, row.task, row.attempt))
        late_s = 0.0 if end_s is None else row.boot_ns / 1e9 - end_s
        if late_s > CLOCK_SLACK_S and row.pid not in frozen:
            text = f"process {row.pid} wrote {row.kind} {late_s:.3f} s after the recorded end"
            yield _offence(Kind.ILLEGAL, "alive after its end", row, text)


def _nothing_starts_blind(evidence: Evidence) -> Iterator[Offence]:
    """Without a quorum nothing starts, once what was claimed before has started or died."""
    for fault in evidence.faults:
        if not fault.name.startswith("quorum-loss") or not fault.bit:
            continue
        lifted_s = fault.healed_s if fault.lifted_s is None else fault.lifted_s
        for run in evidence.runs:
            start_s = run.start.boot_ns / 1e9
            if fault.began_s + evidence.session_timeout_s < start_s < lifted_s:
                text = f"started {start_s - fault.began_s:.1f} s into a loss of the quorum"
                yield _offence(Kind.ILLEGAL, "started without ZooKeeper", run.start, text)
