"""What a workflow's graph and strategy say, against what was queued, skipped and concluded."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tests.chaos.judging.evidence import FINAL_TASK, Attempt, Change, Evidence, Instance, Task
from tests.chaos.judging.verdict import Kind, Offence

_BAD = frozenset({"FAILED", "LOST", "KILLED"})
_BREAKING = frozenset({"FAILED", "LOST"})
_STOP_AT_FAILURE = frozenset({"finish_running", "fail_fast"})
_HANDLERS = frozenset({"any_failed", "always"})  # exist for the case of failure


def judge(evidence: Evidence) -> Iterator[Offence]:
    """Yield everything that ran, did not run, or ended against its workflow's definition."""
    for instance in evidence.instances.values():
        yield from _queued_in_time(evidence, instance)
        yield from _ran_after_upstream(evidence, instance)
        yield from _rows(evidence, instance)
        if instance.state in ("SUCCEEDED", "FAILED", "STOPPED"):
            yield from _conclusion(evidence, instance)
            yield from _kills(evidence, instance)


# -- while it ran -----------------------------------------------------------------------------


def _queued_in_time(evidence: Evidence, instance: Instance) -> Iterator[Offence]:
    """Replay the events: each task is queued only when its upstream tasks allow it.

    A task that is dispatched eagerly is queued and claimed at once.
    """
    states = dict.fromkeys(instance.tasks, "WAITING")
    changes = [c for c in evidence.changes_of.get(instance.id, ()) if c.task in states]
    for _, group in groupby(changes, lambda change: change.at_s):
        together = list(group)  # one transaction: the order of its events says nothing
        before = dict(states)
        states.update({change.task: change.state for change in together if change.task})
        # What has ended may be tried again at once: what its end has let begin was right.
        ended = before | {c.task: c.state for c in together if c.task and c.state in FINAL_TASK}
        for change in together:
            if change.task is None or not _enters_queue(before[change.task], change.state):
                continue
            before[change.task] = change.state
            views = (before, ended, states)
            yield from _queued(instance, instance.tasks[change.task], change, views)


def _enters_queue(before: str, after: str) -> bool:
    return after == "QUEUED" or (after == "CLAIMED" and before != "QUEUED")


def _queued(
    instance: Instance, task: Task, change: Change, views: Sequence[Mapping[str, str]]
) -> Iterator[Offence]:
    """Judge one entry into the queue by the states before and after its transaction."""
    after = views[-1]
    if not any(_may_start(instance, task, states) for states in views):
        upstream = {name: after[name] for name in task.depends_on}
        text = f"queued by {task.run_when} after {upstream} ({instance.strategy})"
        yield _at(change, "queued too early", text)
    elif all(_culprit(instance, task, states) for states in views):
        culprit = _culprit(instance, task, after)
        text = f"queued although {culprit} had failed ({instance.strategy})"
        yield _at(change, "queued in spite of a failure", text)


def _at(change: Change, rule: str, text: str) -> Offence:
    return Offence(Kind.ILLEGAL, rule, text, change.instance, change.task, change.attempt)


def _may_start(instance: Instance, task: Task, states: Mapping[str, str]) -> bool:
    if not task.enabled:
        return False
    seen = [_seen(instance, name, states) for name in task.depends_on]
    match task.run_when:
        case "all_success":
            return _goes_on(seen)
        case "one_success":
            return any("passed" in one for one in seen) or not seen
        case "any_failed":
            return any("failed" in one for one in seen)
    return all(seen)  # all_done, always: whatever they have come to


def _goes_on(seen: Sequence[frozenset[str]]) -> bool:
    """Whether a task that needs all before it may start: neutral ones alone start nothing."""
    return all(one & {"passed", "neutral"} for one in seen) and not _all_neutral(seen)


def _all_neutral(seen: Sequence[frozenset[str]]) -> bool:
    return bool(seen) and all(one == {"neutral"} for one in seen)


def _seen(instance: Instance, name: str, states: Mapping[str, str]) -> frozenset[str]:
    """How a task looks to those behind it: empty as long as it has no final result."""
    state = states[name]
    if state not in FINAL_TASK:
        return frozenset()
    if state == "SUCCEEDED":
        return frozenset({"passed"})
    if state in _BAD:
        return frozenset({"failed", "passed"} if instance.strategy == "ignore" else {"failed"})
    return frozenset({_skipped(instance, instance.tasks[name], states)})


def _skipped(instance: Instance, task: Task, states: Mapping[str, str]) -> str:
    """What a skipped task is to those behind it: a failure before it stops them, too.

    One that is disabled lets through what is before it; one that was not needed is nothing to them.
    """
    seen = [_seen(instance, name, states) for name in task.depends_on]
    if not task.enabled and _goes_on(seen):
        return "passed"
    match task.run_when if task.enabled else "all_success":
        case "any_failed":
            return "blocked" if any("blocked" in one for one in seen) else "neutral"
        case "all_success" | "one_success":
            return "neutral" if _all_neutral(seen) else "blocked"
    return "blocked"  # by the failure strategy alone


def _culprit(instance: Instance, task: Task, states: Mapping[str, str]) -> str | None:
    """Return the failed task that should have kept ``task`` from starting."""
    if instance.strategy not in _STOP_AT_FAILURE or task.run_when in _HANDLERS:
        return None
    return next((name for name, state in states.items() if state in _BREAKING), None)


def _ran_after_upstream(evidence: Evidence, instance: Instance) -> Iterator[Offence]:
    """By the tasks' own clocks: a run starts after a good run of each task it needs."""
    if instance.strategy == "ignore":
        return
    for task in instance.tasks.values():
        runs = evidence.runs_of_task.get((instance.id, task.name), ())
        if not runs or task.run_when != "all_success":
            continue
        for name in task.depends_on:
            attempts = evidence.attempts_of.get((instance.id, name), ())
            if any(attempt.state == "SKIPPED" for attempt in attempts):
                continue  # disabled or not needed, perhaps: the events say whether it had to run
            if instance.tasks[name].children is not None:
                continue  # it has no process of its own
            ends = [
                run.end.boot_ns
                for run in evidence.runs_of_task.get((instance.id, name), ())
                if run.end is not None and run.end.exit == 0
            ]
            for run in runs:
                if not any(end_ns <= run.start.boot_ns for end_ns in ends):
                    text = f"started at {run.start.boot_ns} ns, {name} ended well at {ends} ns"
                    yield Offence(
                        Kind.ILLEGAL,
                        "ran before its upstream",
                        text,
                        instance.id,
                        task.name,
                        run.start.attempt,
                    )


# -- at the end -------------------------------------------------------------------------------


def _rows(evidence: Evidence, instance: Instance) -> Iterator[Offence]:
    found = {attempt.task for attempt in evidence.newest(instance.id).values()}
    for name in instance.tasks.keys() - found:
        yield Offence(Kind.LOST, "task without attempt", "no row", instance.id, name)
    strangers = {task for of, task in evidence.attempts_of if of == instance.id} - found
    for name in strangers:
        text = "not in the definition"
        yield Offence(Kind.ILLEGAL, "attempt without task", text, instance.id, name)


def _conclusion(evidence: Evidence, instance: Instance) -> Iterator[Offence]:
    """A finished instance's state is what its tasks make it."""
    newest = evidence.newest(instance.id)
    states = {name: attempt.state for name, attempt in newest.items()}
    for attempt in newest.values():
        if attempt.state not in FINAL_TASK:
            text = f"still {attempt.state}, but the instance is {instance.state}"
            yield _of(attempt, Kind.LOST, "task of a finished instance", text)
    bad = sorted(name for name, state in states.items() if state in _BAD)
    match instance.state:
        case "SUCCEEDED":
            wrong = bool(bad) and instance.strategy != "ignore"
        case "FAILED":
            wrong = not bad or instance.strategy == "ignore"
        case _:
            wrong = not any(states[name] in ("KILLED", "LOST") for name in bad)
    if wrong:
        text = f"{instance.state} ({instance.strategy}), with these not well: {bad}"
        yield Offence(Kind.ILLEGAL, "state of a finished instance", text, instance.id)
    if instance.state != "STOPPED":
        yield from _skips(instance, newest, states)
        yield from _retries(evidence, instance, newest)


def _of(attempt: Attempt, kind: Kind, rule: str, text: str) -> Offence:
    return Offence(kind, rule, text, attempt.instance, attempt.task, attempt.number)


def _skips(
    instance: Instance, newest: Mapping[str, Attempt], states: Mapping[str, str]
) -> Iterator[Offence]:
    """A task that could have run was not left out."""
    for name, attempt in newest.items():
        task = instance.tasks[name]
        if attempt.state != "SKIPPED" or not task.enabled:
            continue
        if _culprit(instance, task, states) is None and _may_start(instance, task, states):
            upstream = {u: states[u] for u in task.depends_on}
            text = f"skipped ({attempt.reason}), but {task.run_when} of {upstream} holds"
            yield _of(attempt, Kind.LOST, "skipped without reason", text)


def _retries(
    evidence: Evidence, instance: Instance, newest: Mapping[str, Attempt]
) -> Iterator[Offence]:
    """Neither fewer retries than the definition grants, nor more."""
    stopped = any(c.type == "STOP" for c in evidence.commands_of.get(instance.id, ()))
    cut_short = stopped or instance.strategy in _STOP_AT_FAILURE
    for name, attempt in newest.items():
        granted = instance.tasks[name].retries
        if attempt.failures > granted:
            text = f"{attempt.failures} failures before it, {granted} retries granted"
            yield _of(attempt, Kind.ILLEGAL, "too many retries", text)
        if attempt.state == "FAILED" and attempt.failures < granted and not cut_short:
            text = f"failed for good after {attempt.failures} of {granted} retries"
            yield _of(attempt, Kind.LOST, "retry not taken", text)


def _kills(evidence: Evidence, instance: Instance) -> Iterator[Offence]:
    """Nothing is killed that nobody wanted to end."""
    if instance.strategy == "fail_fast":
        return
    if any(
        command.type == "STOP" and command.state == "DONE"
        for command in evidence.commands_of.get(instance.id, ())
    ):
        return
    for attempts in (evidence.attempts_of.get((instance.id, name), ()) for name in instance.tasks):
        for attempt in attempts:
            if attempt.state == "KILLED":
                text = f"killed ({attempt.reason}) in an instance that nobody stopped"
                yield _of(attempt, Kind.ILLEGAL, "killed without reason", text)
