"""Which corners of the semantics a case has been in: empty ones would prove nothing."""

from collections.abc import Iterator

from shoal.core.definition.kinds import LogicKind
from shoal.core.definition.model import (
    FailureStrategy,
    RunWhen,
    TimeoutAction,
    WorkflowTimeoutAction,
)
from shoal.core.runs.run import SkipCause
from shoal.core.runs.states import TaskState, WorkflowState
from tests.unit.core.decide.reference.play import REQUESTS
from tests.unit.core.decide.reference.world import World

REQUEST_KINDS = sorted({*REQUESTS, "admit"})
HAPPENINGS = (
    "takeover",
    "lost slot",
    "late or repeated event",
    "selection",
    "delay",
    "concurrency group",
    "retry after a delay",
    "retry at once",
    "retry with jitter",
    "lost and tried again",
    "returned",
    "returned late",
    "quarantined",
    "tried again",
    "given up after losses",
    "forced",
    "disabled",
    "handled failure",
    "branch chosen",
    "branch not taken",
    "looked again after a loss",
    "looked again after a failure",
    "timed out between looks",
    "warned between looks",
    *(f"{kind} between looks" for kind in ("pause", "resume", "stop", "kill", "force")),
)


def all_corners() -> list[str]:
    """Every corner that cases should visit."""
    return [
        *(f"strategy {strategy}" for strategy in FailureStrategy),
        *(f"run_when {rule}" for rule in RunWhen),
        *(f"type {kind}" for kind in ("SHELL", *LogicKind)),
        *(f"skipped {cause}" for cause in SkipCause),
        *(f"task {state}" for state in TaskState),
        *(f"instance {state}" for state in WorkflowState),
        *(f"{kind} carried out" for kind in REQUEST_KINDS),
        *(f"{kind} refused" for kind in REQUEST_KINDS if kind != "admit"),
        *(f"task timeout {action}" for action in TimeoutAction),
        *(f"workflow timeout {action}" for action in WorkflowTimeoutAction),
        *HAPPENINGS,
    ]


def corners_of(world: World) -> set[str]:
    """Where the case that ``world`` played has been."""
    return {*world.visited, *_by_definition(world), *_by_tasks(world), *_by_attempts(world)}


def _by_definition(world: World) -> Iterator[str]:
    yield f"strategy {world.reference.strategy}"
    yield from (f"instance {state}" for state in world.states)
    yield from (f"task {state}" for state in world.task_states)
    if world.case.selected is not None:
        yield "selection"
    if world.reference.warned:
        yield f"workflow timeout {world.case.definition.get('timeout_action', 'warn')}"


def _by_tasks(world: World) -> Iterator[str]:
    for task, spec in world.reference.tasks.items():
        last = world.reference.last(task)
        yield f"run_when {world.reference.rule(task)}"
        yield f"type {world.reference.kind(task)}"
        if spec.get("delay"):
            yield "delay"
        if spec.get("concurrency_group"):
            yield "concurrency group"
        if not spec.get("enabled", True):
            yield "disabled"
        if last.state in ("FAILED", "LOST") and world.reference.handled(task):
            yield "handled failure"


def _by_attempts(world: World) -> Iterator[str]:
    for task, tries in world.reference.tries.items():
        spec = world.reference.tasks[task]
        for attempt in tries:
            yield f"task {attempt.state}"
            if attempt.cause is not None:
                yield f"skipped {attempt.cause}"
                if attempt.cause == "BRANCH":
                    yield "branch not taken"
            if attempt.chosen:
                yield "branch chosen"
            if attempt.forced:
                yield "forced"
            if attempt.losses:
                yield "lost and tried again"
            if attempt.state == "LOST" and attempt.losses > 1:
                yield "given up after losses"
            if attempt.looks and attempt.losses:
                yield "looked again after a loss"
            if attempt.looks and attempt.failures:
                yield "looked again after a failure"
            if attempt.looks and attempt.overdue and attempt.state == "FAILED":
                yield "timed out between looks"
            if attempt.looks and attempt.warned:
                yield "warned between looks"
            if attempt.warned or attempt.overdue:
                yield f"task timeout {spec.get('timeout_action', 'fail')}"
            if attempt.retry and spec.get("retry_jitter"):
                yield "retry with jitter"
            elif attempt.retry:
                yield "retry after a delay" if spec.get("retry_delay") else "retry at once"
