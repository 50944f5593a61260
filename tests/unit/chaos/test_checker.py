"""The checker finds each offence that is planted into an honest history.

A rule that finds nothing makes every run of the fault suite clean.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import ModuleType
from typing import Any

import pytest

from tests.chaos.judging import checker, commands, graphs, programs, runs, states
from tests.chaos.judging.checker import judge
from tests.chaos.judging.evidence import Change, Command, Evidence, Step, Task
from tests.chaos.judging.verdict import Kind, Verdict
from tests.chaos.records import FaultRecord
from tests.chaos.workload.ledger import Kind as RowKind
from tests.chaos.workload.workload import Asked, Edit
from tests.unit.chaos.evidence import CLEAN, ROWS, TASKS, attempt, instance, row, task

KILLED_LONG_AGO = FaultRecord("kill-worker", "worker-1", -60.0, -40.0, -40.0, True, "died")
SLOW = FaultRecord(
    "slow-database", "all", -20.0, 6.0, 6.0, True, "2 s for each", costs_workers=False
)


def test_honest_history_is_clean() -> None:
    assert list(judge(CLEAN)) == []


# -- planting -------------------------------------------------------------------------------------


def change(index: int, **fields: Any) -> Evidence:
    changes = list(CLEAN.changes)
    changes[index] = replace(changes[index], **fields)
    return replace(CLEAN, changes=changes)


def more_changes(*changes: Change) -> Evidence:
    """Add events where their times put them."""
    everything = sorted([*CLEAN.changes, *changes], key=lambda change: change.at_s)
    return replace(CLEAN, changes=everything)


def command(index: int, **fields: Any) -> Evidence:
    commands = list(CLEAN.commands)
    commands[index] = replace(commands[index], **fields)
    return replace(CLEAN, commands=commands)


def more_commands(*commands: Command) -> Evidence:
    return replace(CLEAN, commands=[*CLEAN.commands, *commands])


def steps(*found: Step) -> Evidence:
    return replace(CLEAN, steps=found)


def asked(*found: Asked) -> Evidence:
    return replace(CLEAN, asked=found)


def failed_for_good() -> Evidence:
    """``second`` fails, and its retry is never taken."""
    evidence = instance(state="FAILED", tasks={**TASKS, "second": Task("second", (), retries=2)})
    attempts = [*CLEAN.attempts[:2], replace(CLEAN.attempts[2], state="FAILED", exit_code=7)]
    return replace(evidence, attempts=attempts)


STOP = Command(2, "STOP", "key-2", "DONE", 1, 1, handled_s=8.5)
FIRED = Command(2, "START", "key-2", "DONE", None, 1, 5, "2026-01-01T00:00:02Z")

QUORUM_LOSS = FaultRecord("quorum-loss", "zookeeper-1", 2.0, 5.0, 6.0, True, "no writes")


def edited(ran: int, *began_s: float) -> Evidence:
    """Let the first run of ``second`` be of a version, and edits last 1 s each."""
    edits = [Edit(number, at_s, at_s + 1.0) for number, at_s in enumerate(began_s, start=1)]
    return replace(row(2, program=ran), edits=edits)


PLANTED: Sequence[tuple[Kind, str, Evidence]] = [
    # nothing to judge
    (Kind.BLIND, "something was done", Evidence()),
    (Kind.BLIND, "something was done", replace(CLEAN, rows=[])),
    (Kind.BLIND, "something was done", replace(CLEAN, asked=[])),
    # commands
    (Kind.LOST, "acknowledged command", asked(Asked("key-2", "STOP", 1, {2}))),
    (Kind.LOST, "acknowledged command", asked(Asked("key-9", "START", None, {1}))),
    (Kind.LOST, "acknowledged command", asked(Asked("key-1", "STOP", None, {1}))),
    (Kind.ILLEGAL, "one key, one command", asked(Asked("key-1", "START", None, {1, 2}))),
    (Kind.ILLEGAL, "one key, one command", more_commands(replace(CLEAN.commands[0], id=2))),
    (Kind.ILLEGAL, "valid request refused", asked(Asked("k", "STOP", 1, {1}, "409"))),
    (Kind.STUCK, "pending command", command(0, state="PENDING")),
    (Kind.LOST, "instance of a command", command(0, result_instance_id=2)),
    (Kind.LOST, "instance of a command", command(0, result_instance_id=None)),
    (Kind.STUCK, "open instance", instance(state="RUNNING")),
    (Kind.STUCK, "open instance", instance(state="PAUSED")),
    (Kind.ILLEGAL, "instance without command", instance(command_id=5)),
    (Kind.ILLEGAL, "instance without command", command(0, type="STOP")),
    (
        Kind.ILLEGAL,
        "one command, one instance",
        replace(CLEAN, instances={1: CLEAN.instances[1], 2: replace(CLEAN.instances[1], id=2)}),
    ),
    (Kind.LOST, "effect of a command", more_commands(STOP)),
    (Kind.LOST, "effect of a command", more_commands(replace(STOP, type="RESUME"))),
    (
        Kind.ILLEGAL,
        "held instance went on",
        replace(
            more_changes(Change(50, 8.5, 1, "STOPPING", previous="RUNNING")),
            commands=[*CLEAN.commands, STOP],
        ),
    ),
    (
        Kind.ILLEGAL,
        "one instance per fire time",
        more_commands(FIRED, replace(FIRED, id=3, key="key-3")),
    ),
    # runs
    (
        Kind.DUPLICATE,
        "lock of the task",
        replace(CLEAN, rows=[*CLEAN.rows, replace(CLEAN.rows[3], kind=RowKind.DUPLICATE)]),
    ),
    (
        Kind.DUPLICATE,
        "overlapping runs",
        replace(CLEAN, rows=[*CLEAN.rows, replace(ROWS[2], kind=RowKind.END, boot_ns=13 * 10**9)]),
    ),
    (
        Kind.RERUN,
        "one process for an attempt",
        replace(CLEAN, rows=[*CLEAN.rows, replace(ROWS[0], pid=999, boot_ns=6 * 10**9)]),
    ),
    (Kind.ILLEGAL, "run without attempt", row(0, task_instance_id=77)),
    (Kind.ILLEGAL, "run without attempt", row(0, attempt=2)),
    (Kind.ILLEGAL, "run without claim", change(3, state="PAUSED")),
    (Kind.ILLEGAL, "run without claim", attempt(1, state="SKIPPED")),
    (Kind.LOST, "success without work", row(1, exit=7)),
    (Kind.LOST, "success without work", replace(CLEAN, rows=ROWS[2:])),
    (Kind.LOST, "success without work", attempt(0, exit_code=None)),
    (Kind.ILLEGAL, "failure that was none", attempt(0, state="FAILED", exit_code=0)),
    (Kind.ILLEGAL, "failure that was none", attempt(1, state="FAILED", exit_code=None)),
    (Kind.ILLEGAL, "attempts in order", row(2, boot_ns=15 * 10**9)),
    (Kind.RERUN, "reason to run again", attempt(1, state="SUCCEEDED", exit_code=0)),
    (Kind.RERUN, "reason to be lost", replace(CLEAN, faults=[])),
    (
        Kind.RERUN,
        "reason to be lost",
        replace(CLEAN, faults=[replace(CLEAN.faults[0], costs_workers=False)]),
    ),
    (
        Kind.RERUN,
        "reason to be lost",
        replace(CLEAN, faults=[replace(CLEAN.faults[0], began_s=8.5)]),
    ),
    (  # it was started when all was well again
        Kind.RERUN,
        "reason to be lost",
        replace(CLEAN, faults=[KILLED_LONG_AGO, SLOW]),
    ),
    (Kind.ILLEGAL, "epochs of runs", row(3, epoch=49)),
    (Kind.ILLEGAL, "epochs of runs", replace(CLEAN, epochs={7: 49})),
    (Kind.ILLEGAL, "alive after its end", row(1, boot_ns=5 * 10**9)),
    (
        Kind.ILLEGAL,
        "alive after its end",
        replace(CLEAN, rows=[*CLEAN.rows, replace(ROWS[2], kind=RowKind.CHILD, boot_ns=9 * 10**9)]),
    ),
    (
        Kind.ILLEGAL,
        "started without ZooKeeper",
        replace(
            CLEAN,
            faults=[*CLEAN.faults, replace(QUORUM_LOSS, began_s=1.0)],
            session_timeout_s=2.0,
        ),
    ),
    # states
    (Kind.ILLEGAL, "gap in the history", change(-1, previous="PAUSING")),
    (Kind.ILLEGAL, "transition of an instance", change(0, state="RUNNING")),
    (
        Kind.ILLEGAL,
        "transition of an instance",
        more_changes(Change(98, 14.0, 1, "RUNNING", previous="SUCCEEDED")),
    ),
    (Kind.ILLEGAL, "row and history", instance(state="FAILED")),
    (Kind.ILLEGAL, "row and history", attempt(0, state="LOST")),
    (Kind.ILLEGAL, "transition of an attempt", change(3, state="RUNNING")),
    (
        Kind.ILLEGAL,
        "transition of an attempt",
        more_changes(Change(98, 6.2, 1, "FAILED", task="first", attempt=1)),
    ),
    (Kind.ILLEGAL, "attempts are counted", attempt(2, number=3)),
    (Kind.ILLEGAL, "reason of an attempt", attempt(2, failures=1)),
    (Kind.ILLEGAL, "reason of an attempt", attempt(2, losses=2)),
    (Kind.ILLEGAL, "reason of an attempt", attempt(1, state="SUCCEEDED")),
    (
        Kind.ILLEGAL,
        "committed changes in order",
        steps(Step("command", 1, "PENDING", "DONE"), Step("command", 1, "PENDING", "DONE")),
    ),
    (Kind.ILLEGAL, "epochs only rise", steps(Step("partition", 7, "50", "49"))),
    (Kind.ILLEGAL, "epochs only rise", steps(Step("partition", 7, "9", "9"))),
    (
        Kind.ILLEGAL,
        "committed change of an attempt",
        steps(Step("task_instance", 11, "SUCCEEDED", "FAILED")),
    ),
    (
        Kind.ILLEGAL,
        "committed change of an instance",
        steps(Step("workflow_instance", 1, "SUCCEEDED", "RUNNING")),
    ),
    (
        Kind.ILLEGAL,
        "committed change of a command",
        steps(Step("command", 1, "DONE", "REFUSED")),
    ),
    # graphs
    (
        Kind.ILLEGAL,
        "queued too early",
        replace(
            CLEAN,
            changes=[*CLEAN.changes[:5], *CLEAN.changes[6:7], CLEAN.changes[5], *CLEAN.changes[7:]],
        ),
    ),
    (Kind.ILLEGAL, "queued too early", task("second", enabled=False)),
    (Kind.ILLEGAL, "queued too early", task("second", run_when="any_failed")),
    (
        Kind.ILLEGAL,
        "queued in spite of a failure",
        replace(
            instance(strategy="fail_fast", tasks={**TASKS, "third": Task("third")}),
            changes=[
                *CLEAN.changes[:6],
                Change(50, 4.2, 1, "FAILED", task="third", attempt=1),
                *CLEAN.changes[6:],
            ],
        ),
    ),
    (Kind.ILLEGAL, "ran before its upstream", row(2, boot_ns=36 * 10**8)),
    (Kind.LOST, "task without attempt", instance(tasks={**TASKS, "third": Task("third")})),
    (Kind.ILLEGAL, "attempt without task", instance(tasks={"first": TASKS["first"]})),
    (Kind.LOST, "task of a finished instance", attempt(2, state="QUEUED")),
    (Kind.ILLEGAL, "state of a finished instance", attempt(2, state="FAILED", exit_code=7)),
    (Kind.ILLEGAL, "state of a finished instance", instance(state="FAILED")),
    (Kind.ILLEGAL, "state of a finished instance", instance(state="STOPPED")),
    (Kind.LOST, "skipped without reason", attempt(2, state="SKIPPED")),
    (Kind.ILLEGAL, "too many retries", attempt(2, failures=2)),
    (Kind.LOST, "retry not taken", failed_for_good()),
    (Kind.ILLEGAL, "killed without reason", attempt(1, state="KILLED")),
    # the version of a program: the instance began after 0.5 seconds
    (Kind.ILLEGAL, "program of the beginning", edited(2, 0.0, 6.0)),
    (Kind.ILLEGAL, "program of the beginning", edited(1, -9.0, -5.0)),
]


@pytest.mark.parametrize(
    ("kind", "rule", "evidence"),
    PLANTED,
    ids=[f"{rule}-{n}" for n, (_, rule, _) in enumerate(PLANTED)],
)
def test_planted_offence_is_found(kind: Kind, rule: str, evidence: Evidence) -> None:
    found = list(judge(evidence))
    assert (kind, rule) in {(offence.kind, offence.rule) for offence in found}
    assert not Verdict(found).is_clean


def test_every_rule_has_a_planted_offence() -> None:
    modules = (commands, graphs, programs, runs, states, checker)
    assert {rule for module in modules for rule in rules_of(module)} == {p[1] for p in PLANTED}


def rules_of(module: ModuleType) -> Iterator[str]:
    """Yield the first text in each call that makes an offence: the name of its rule."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id in ("Offence", "_offence", "_of", "_at"):
            texts = (a.value for a in node.args if isinstance(a, ast.Constant))
            yield from (text for text in islice(texts, 1) if isinstance(text, str))


# -- what is not an offence -----------------------------------------------------------------------


EXCUSED: Mapping[str, Evidence] = {
    "claimed just before the quorum was lost": replace(
        CLEAN, faults=[*CLEAN.faults, QUORUM_LOSS], session_timeout_s=2.0
    ),
    "the quorum was back before another fault was over": replace(
        CLEAN,
        faults=[*CLEAN.faults, replace(QUORUM_LOSS, began_s=1.0, lifted_s=2.5)],
        session_timeout_s=2.0,
    ),
    "lost before it ran": replace(CLEAN, rows=[*ROWS[:2], *ROWS[3:]], faults=[]),
    "done when it thawed": replace(
        CLEAN,
        rows=[*CLEAN.rows, replace(ROWS[2], kind=RowKind.END, boot_ns=11 * 10**9)],
        faults=[replace(CLEAN.faults[0], frozen_pids=frozenset({112}))],
    ),
    "frozen beyond its end": replace(
        CLEAN,
        rows=[*CLEAN.rows, replace(ROWS[2], kind=RowKind.CHILD, boot_ns=9 * 10**9)],
        faults=[replace(CLEAN.faults[0], frozen_pids=frozenset({112}))],
    ),
    "version of the beginning": edited(1, -5.0, 6.0),
    "version of about the beginning": edited(2, -5.0, 1.0),
    "version after a command": replace(
        edited(2, -5.0, 6.0),
        commands=[*CLEAN.commands, Command(2, "RECOVER", "key-2", "REFUSED", 1)],
    ),
    "two commands at once cancel out": more_commands(
        replace(STOP, type="PAUSE"), replace(STOP, id=3, key="key-3", type="RESUME")
    ),
    "frozen with its node": replace(
        CLEAN,
        rows=[*CLEAN.rows, replace(CLEAN.rows[3], kind=RowKind.DUPLICATE)],
        faults=[replace(CLEAN.faults[0], frozen_pids=frozenset({112}))],
    ),
}


@pytest.mark.parametrize("evidence", EXCUSED.values(), ids=EXCUSED.keys())
def test_what_is_allowed_is_no_offence(evidence: Evidence) -> None:
    assert list(judge(evidence)) == []


def test_time_of_a_stop_is_measured_where_no_fault_is_near() -> None:
    late = replace(STOP, handled_s=13.0)
    assert commands.stop_delays(more_commands(late)) == [pytest.approx(0.9)]
    near = replace(CLEAN.faults[0], recovered_s=13.5)
    assert commands.stop_delays(replace(more_commands(late), faults=[near])) == []
    never = replace(CLEAN.faults[0], recovered_s=None)
    assert commands.stop_delays(replace(more_commands(late), faults=[never])) == []


def test_losses_are_stored_late_while_the_database_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "LOSS_SLACK_S", 1.0)
    killed = FaultRecord("kill-worker", "worker-1", 4.1, 4.2, 4.2, True, "died")
    slow = replace(SLOW, began_s=4.5, healed_s=7.5, recovered_s=7.5)
    lost = row(2, boot_ns=4 * 10**9)
    assert list(judge(replace(lost, faults=[killed, slow]))) == []
    for other in (replace(slow, name="kill-api"), replace(slow, began_s=6.0)):
        (offence,) = judge(replace(lost, faults=[killed, other]))
        assert offence.rule == "reason to be lost"


def test_delay_of_a_loss_counts_from_the_last_kill() -> None:
    assert runs.loss_delays(CLEAN) == [pytest.approx(0.2)]
    later = replace(CLEAN.faults[0], began_s=7.1, healed_s=7.3, recovered_s=7.3)
    assert runs.loss_delays(replace(CLEAN, faults=[later])) == []  # started afterwards
    other = replace(CLEAN.faults[0], name="cut-zookeeper-worker", began_s=7.9)
    assert runs.loss_delays(replace(CLEAN, faults=[*CLEAN.faults, other])) == []
