"""Histories of states and epochs against the rules, stated anew here.

One event may stand for several transitions: a master stores all decisions about one instance that
fall together as one. The database's triggers see the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tests.chaos.judging.evidence import Attempt, Change, Evidence, Step
from tests.chaos.judging.verdict import Kind, Offence

# By itself, an attempt in the first state is stored next in one of the others.
_EARLY = frozenset({"WAITING", "UP_FOR_RETRY", "PAUSED", "QUEUED", "BLOCKED"})
_NOT_RUN = frozenset({"SKIPPED", "KILLED"})
_RESULTS = frozenset({"SUCCEEDED", "FAILED", "KILLED", "LOST"})
_TASK: Mapping[str, frozenset[str]] = {
    "WAITING": _EARLY | _NOT_RUN | {"CLAIMED"},  # by eager dispatch
    "UP_FOR_RETRY": _EARLY | _NOT_RUN,
    "PAUSED": _EARLY | _NOT_RUN,
    "BLOCKED": _EARLY | _NOT_RUN,
    "QUEUED": _EARLY | _NOT_RUN | {"CLAIMED"},
    "CLAIMED": _RESULTS | _NOT_RUN | {"RUNNING", "QUEUED", "PAUSED"},
    "RUNNING": _RESULTS,
    **dict.fromkeys(("SUCCEEDED", "FAILED", "KILLED", "LOST", "SKIPPED"), frozenset()),
}
# The master runs it: by itself, such an attempt is never queued.
_BY_MASTER: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_EARLY - {"QUEUED"}, _EARLY - {"QUEUED"} | _NOT_RUN | _RESULTS | {"RUNNING"}),
    "RUNNING": _RESULTS | {"PAUSED"},
    **dict.fromkeys(("SUCCEEDED", "FAILED", "KILLED", "LOST", "SKIPPED"), frozenset()),
}
# What one decision can do to an instance: a step, and its end if nothing is left to do.
_INSTANCE: Mapping[str, frozenset[str]] = {
    "QUEUED": frozenset({"RUNNING", "PAUSING", "PAUSED", "STOPPING", "STOPPED", "SUCCEEDED"}),
    "RUNNING": frozenset({"PAUSING", "PAUSED", "STOPPING", "STOPPED", "SUCCEEDED", "FAILED"}),
    "PAUSING": frozenset({"RUNNING", "PAUSED", "STOPPING", "STOPPED", "SUCCEEDED", "FAILED"}),
    "PAUSED": frozenset({"RUNNING", "STOPPING", "STOPPED", "SUCCEEDED", "FAILED"}),
    "STOPPING": frozenset({"STOPPED", "SUCCEEDED", "FAILED"}),
    "STOPPED": frozenset({"RUNNING", "FAILED"}),
    "FAILED": frozenset({"RUNNING"}),
    "SUCCEEDED": frozenset(),
}
_COMMAND: Mapping[str, frozenset[str]] = {
    "PENDING": frozenset({"DONE", "REFUSED"}),
    "DONE": frozenset(),
    "REFUSED": frozenset(),
}


def judge(evidence: Evidence) -> Iterator[Offence]:
    """Yield breaks of the state machines, of fencing, and of the count of attempts."""
    for instance in evidence.instances:
        changes = evidence.changes_of.get(instance, ())
        yield from _instance_history(evidence, instance, changes)
        yield from _task_histories(evidence, instance, changes)
    for attempts in evidence.attempts_of.values():
        yield from _numbers(attempts)
        for before, after in pairwise(attempts):
            yield from _counters(before, after)
    yield from _steps(evidence)


def _instance_history(
    evidence: Evidence, instance: int, changes: Sequence[Change]
) -> Iterator[Offence]:
    own = [change for change in changes if change.task is None]
    handled = {command.handled_s for command in evidence.commands_of.get(instance, ())}
    state = None
    for change in own:
        if change.previous != state:
            text = f"event {change.id} leads from {change.previous}, but it was {state}"
            yield Offence(Kind.ILLEGAL, "gap in the history", text, instance)
        if state is None:
            legal = change.state == "QUEUED"
        elif change.at_s in handled:  # together with a command, or several that cancel out
            legal = _reachable(state, change.state)
        else:
            legal = change.state in _INSTANCE[state]
        if not legal:
            text = f"from {state} to {change.state} by event {change.id}"
            yield Offence(Kind.ILLEGAL, "transition of an instance", text, instance)
        state = change.state
    stored = evidence.instances[instance].state
    if state != stored:
        text = f"the row says {stored}, the last event {state}"
        yield Offence(Kind.ILLEGAL, "row and history", text, instance)


def _reachable(before: str, after: str) -> bool:
    """Whether ``after`` follows ``before`` in one step or more."""
    seen: set[str] = set()
    ahead = set(_INSTANCE[before])
    while ahead:
        state = ahead.pop()
        if state == after:
            return True
        seen.add(state)
        ahead |= _INSTANCE[state] - seen
    return False


def _task_histories(
    evidence: Evidence, instance: int, changes: Sequence[Change]
) -> Iterator[Offence]:
    states: dict[tuple[str, int], str] = {}
    for change in changes:
        if change.task is None or change.attempt is None:
            continue
        key = (change.task, change.attempt)
        before = states.get(key, "WAITING")
        if change.state not in _next(evidence, instance, change.task, before):
            text = f"from {before} to {change.state} by event {change.id}"
            yield Offence(Kind.ILLEGAL, "transition of an attempt", text, instance, *key)
        states[key] = change.state
    for task in evidence.instances[instance].tasks:
        for attempt in evidence.attempts_of.get((instance, task), ()):
            last = states.get((task, attempt.number), "WAITING")
            if last != attempt.state:
                text = f"the row says {attempt.state}, the last event {last}"
                yield _of(attempt, "row and history", text)


def _next(evidence: Evidence, instance: int, name: str, state: str) -> frozenset[str]:
    """Return what an attempt of a task may be stored as after ``state``."""
    task = evidence.instances[instance].tasks.get(name)
    by_master = task is not None and task.children is not None
    return (_BY_MASTER if by_master else _TASK).get(state, frozenset())


def _after(evidence: Evidence, step: Step) -> frozenset[str]:
    attempt = evidence.attempt_by_id.get(step.row)
    if attempt is None:
        return _TASK.get(step.before, frozenset())
    return _next(evidence, attempt.instance, attempt.task, step.before)


def _of(attempt: Attempt, rule: str, text: str) -> Offence:
    return Offence(Kind.ILLEGAL, rule, text, attempt.instance, attempt.task, attempt.number)


def _numbers(attempts: Sequence[Attempt]) -> Iterator[Offence]:
    numbers = [attempt.number for attempt in attempts]
    if numbers != list(range(1, len(numbers) + 1)):
        yield _of(attempts[-1], "attempts are counted", f"its attempts are {numbers}")


def _counters(before: Attempt, after: Attempt) -> Iterator[Offence]:
    """Failures use up retries, losses do not, and a success is final."""
    by_hand = (0, 0)
    allowed = {
        "FAILED": {(before.failures + 1, before.losses), by_hand},
        "LOST": {(before.failures, before.losses + 1), by_hand},
        "KILLED": {by_hand},
        "SKIPPED": {by_hand},
    }.get(before.state, set())
    if (after.failures, after.losses) not in allowed:
        text = (
            f"follows attempt {before.number} ({before.state}, failures {before.failures}, losses "
            f"{before.losses}) with failures {after.failures}, losses {after.losses}"
        )
        yield _of(after, "reason of an attempt", text)


def _steps(evidence: Evidence) -> Iterator[Offence]:
    """What the triggers saw: row by row, without gaps, epochs only upwards."""
    last: dict[tuple[str, int], str] = {}
    for step in evidence.steps:
        where = f"{step.table} {step.row}: {step.before} to {step.after}"
        if last.setdefault((step.table, step.row), step.before) != step.before:
            text = f"{where}, but it was {last[step.table, step.row]}"
            yield Offence(Kind.ILLEGAL, "committed changes in order", text)
        last[step.table, step.row] = step.after
        if step.table == "partition":
            if int(step.after) <= int(step.before):
                yield Offence(Kind.ILLEGAL, "epochs only rise", where)
        elif step.table == "task_instance" and step.after not in _after(evidence, step):
            yield Offence(Kind.ILLEGAL, "committed change of an attempt", where)
        elif step.table == "workflow_instance" and not _reachable(step.before, step.after):
            yield Offence(Kind.ILLEGAL, "committed change of an instance", where)
        elif step.table == "command" and step.after not in _COMMAND[step.before]:
            yield Offence(Kind.ILLEGAL, "committed change of a command", where)
