"""Why a task or an instance is where it is: what each layer says, in the order of the layers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from shoal.core.runs.quarantine import QuarantinedItem
from shoal.core.runs.records import TaskInstance
from shoal.core.runs.run import SkipCause, WorkflowPlan
from shoal.core.runs.states import FINISHED_TASK, HELD_BY_WORKER, TaskState
from shoal.core.runs.why.codes import Argument, Code
from shoal.core.timing.durations import format_duration

_T = TaskState
_MOST_NAMES = 5  # of tasks in one sentence


class Layer(StrEnum):
    """What a task or an instance waits for, from the outside to the inside."""

    COMMAND = "command"
    OVERLAP = "overlap"  # other runs of the workflow
    INSTANCE = "instance"  # the instance's own state
    PARTITION = "partition"  # the master that works on it
    UPSTREAM = "upstream"  # other tasks of the instance
    DELAY = "delay"
    CONCURRENCY = "concurrency"  # slots of the concurrency group
    DEPENDENCY = "dependency"  # runs of other workflows
    LOOK = "look"  # something outside, for which it looks again and again
    CHILD = "child"  # sub-workflows
    QUEUE = "queue"  # its place among what waits for the worker group
    WORKERS = "workers"  # the worker group
    RESULT = "result"  # it has ended


@dataclass(frozen=True)
class RunFinding:
    """What one layer says. ``waits``: this is something that it waits for now."""

    layer: Layer
    text: str
    waits: bool = True
    instance_id: int | None = None  # another instance that the text speaks of
    task_instance_id: int | None = None  # another attempt that the text speaks of
    code: Code = field(kw_only=True)  # what the text says, for programs
    arguments: Mapping[str, Argument] = field(default_factory=dict, kw_only=True)


def of_quarantine(aside: QuarantinedItem, tasks: Iterable[TaskInstance] = ()) -> RunFinding:
    """That nothing is done with an instance, and why. ``tasks``: its newest attempts."""
    held = [t for t in tasks if t.state in HELD_BY_WORKER and t.worker is not None]
    running = ", ".join(f"{one.task} on {one.worker}" for one in held[:_MOST_NAMES])
    running += ", …" if len(held) > _MOST_NAMES else ""
    text = (
        f"its master cannot work with it: {aside.reason} (tried {aside.tries} times since "
        f"{aside.since.isoformat()}); `shoal recover {aside.item}` tries again"
    )
    if running:
        text += f". Tasks that may still run: {running}"
    arguments: dict[str, Argument] = {
        "reason": aside.reason,
        "tries": aside.tries,
        "since": aside.since.isoformat(),
        "running": running,
    }
    return RunFinding(Layer.PARTITION, text, code=Code.INSTANCE_QUARANTINED, arguments=arguments)


def of_upstream(
    plan: WorkflowPlan, tasks: Mapping[str, TaskInstance], task: str
) -> Iterator[RunFinding]:
    """What the tasks before a WAITING task have not brought yet. ``tasks``: newest attempts."""
    open_ = [u for u in plan.upstream[task] if tasks[u].state not in FINISHED_TASK]
    if not open_:
        return
    rule = plan.tasks[task].run_when
    for name in open_[:_MOST_NAMES]:
        attempt = tasks[name]
        text = f"upstream task {name} is {attempt.state}"
        yield RunFinding(
            Layer.UPSTREAM,
            text,
            task_instance_id=attempt.id,
            code=Code.UPSTREAM_TASK,
            arguments={"upstream": name, "state": attempt.state.value},
        )
    if len(open_) > _MOST_NAMES:
        more = len(open_) - _MOST_NAMES
        text = f"… and {more} more upstream tasks"
        yield RunFinding(Layer.UPSTREAM, text, code=Code.UPSTREAM_MORE, arguments={"tasks": more})
    yield RunFinding(
        Layer.UPSTREAM,
        f"run_when is {rule}: {len(open_)} of {len(plan.upstream[task])} upstream tasks are open",
        waits=False,
        code=Code.UPSTREAM_RULE,
        arguments={
            "rule": rule.value,
            "open": len(open_),
            "tasks": len(plan.upstream[task]),
        },
    )


def of_delay(attempt: TaskInstance, now: datetime) -> Iterator[RunFinding]:
    """What a DELAYED or UP_FOR_RETRY attempt waits for."""
    if attempt.due_at is None:
        return
    left_s = (attempt.due_at - now).total_seconds()
    when = f"in {format_duration(round(left_s, 1))}" if left_s > 0 else "and is due"
    code = Code.DELAY_LOOK
    if attempt.looks:
        text = f"its next look is at {attempt.due_at.isoformat()} ({when})"
    else:
        is_start = attempt.state is _T.DELAYED
        what = "its start delay" if is_start else "its retry delay"
        code = Code.DELAY_START if is_start else Code.DELAY_RETRY
        text = f"waits for {what}, which ends at {attempt.due_at.isoformat()} ({when})"
    arguments: dict[str, Argument] = {"at": attempt.due_at.isoformat()}
    yield RunFinding(Layer.DELAY, text, code=code, arguments=arguments)


def of_looks(attempt: TaskInstance) -> Iterator[RunFinding]:
    """What the earlier looks of a task that waits for something have found."""
    if not attempt.looks:
        return
    since = f" since {attempt.waiting_since.isoformat()}" if attempt.waiting_since else ""
    times = "once" if attempt.looks == 1 else f"{attempt.looks:,} times"
    answer = f"; the last answer: {attempt.reason}" if attempt.reason else ""
    yield RunFinding(
        Layer.LOOK,
        f"it waits{since} and has looked {times}{answer}",
        code=Code.LOOK_WAITS,
        arguments={
            "since": attempt.waiting_since.isoformat() if attempt.waiting_since else None,
            "looks": attempt.looks,
            "answer": attempt.reason,
        },
    )


def of_children(detail: Mapping[str, Any]) -> Iterator[RunFinding]:
    """What the instances of a SUB_WORKFLOW or MAP task do."""
    items = detail.get("items") or []
    children: Mapping[str, Mapping[str, Any]] = detail.get("children") or {}
    done = sum(child["state"] == "SUCCEEDED" for child in children.values())
    if len(items) > 1:
        text = f"{done} of {len(items)} items have succeeded, {len(children)} were started"
        yield RunFinding(
            Layer.CHILD,
            text,
            waits=False,
            code=Code.CHILD_ITEMS,
            arguments={"succeeded": done, "items": len(items), "started": len(children)},
        )
    going = [c for c in children.values() if c["state"] not in ("SUCCEEDED", "FAILED", "REFUSED")]
    going.sort(key=lambda child: "quarantined" not in child)  # only a person can help those
    for child in going[:_MOST_NAMES]:
        instance_id = child.get("instance")
        if "quarantined" in child:
            who, see = f"instance {instance_id}", f"shoal why {instance_id}"
            if instance_id is None:
                who, see = "the start of an instance", "shoal status"
            text = f"{who} is quarantined and holds no place; `{see}` shows the reason"
            yield RunFinding(
                Layer.CHILD,
                text,
                instance_id=instance_id,
                code=Code.CHILD_QUARANTINED,
                arguments={"instance": instance_id},
            )
            continue
        if instance_id is None:
            text = "an instance is being started"
            yield RunFinding(Layer.CHILD, text, code=Code.CHILD_STARTING)
            continue
        yield RunFinding(
            Layer.CHILD,
            f"instance {instance_id} is {child['state']}",
            instance_id=instance_id,
            code=Code.CHILD_INSTANCE,
            arguments={"instance": instance_id, "state": child["state"]},
        )
    if len(going) > _MOST_NAMES:
        more = len(going) - _MOST_NAMES
        text = f"… and {more} more instances"
        yield RunFinding(Layer.CHILD, text, code=Code.CHILD_MORE, arguments={"instances": more})


def of_dependencies(detail: Mapping[str, Any]) -> Iterator[RunFinding]:
    """What a DEPENDENT task waits for and has found; ``detail`` as ``logic.judging`` made it."""
    for item in detail.get("items") or ():
        name = f"{item['project']}/{item['workflow']}"
        what = f"task {item['task']} of {name}" if item["task"] else name
        if not item["exists"]:
            yield RunFinding(
                Layer.DEPENDENCY,
                f"there is no workflow {name}",
                code=Code.DEPENDENCY_NO_WORKFLOW,
                arguments={"project": item["project"], "workflow": item["workflow"]},
            )
            continue
        for interval in item["intervals"]:
            runs = interval["runs"]
            best = f"instance {runs[0]['instance']} is {runs[0]['state']}" if runs else "no run yet"
            yield RunFinding(
                Layer.DEPENDENCY,
                f"{what} from {interval['from']} ({item['date']}): {best}",
                waits=interval["verdict"] != "SUCCESS",
                instance_id=runs[0]["instance"] if runs else None,
                code=Code.DEPENDENCY_RUN,
                arguments={
                    "project": item["project"],
                    "workflow": item["workflow"],
                    "upstream": item["task"],
                    "from": interval["from"],
                    "date": item["date"],
                    "instance": runs[0]["instance"] if runs else None,
                    "state": runs[0]["state"] if runs else None,
                },
            )


def of_workers(
    group: str, slots: Sequence[tuple[str, int, int, str | None]]
) -> Iterator[RunFinding]:
    """What the workers of a group do: (worker, slots, running, why it takes nothing) each."""
    if not slots:
        text = f"no worker of group {group!r} is there; start one: shoal worker --group {group}"
        yield RunFinding(Layer.WORKERS, text, code=Code.WORKERS_NONE, arguments={"group": group})
        return
    free = sum(max(0, s - r) for _, s, r, paused in slots if paused is None)
    for worker, _, _, paused in slots:
        if paused is not None:
            yield RunFinding(
                Layer.WORKERS,
                f"worker {worker} takes nothing: {paused}",
                code=Code.WORKERS_PAUSED,
                arguments={"worker": worker, "reason": paused},
            )
    text = f"{len(slots)} workers in group {group!r} have {free} free slots"
    if len(slots) == 1:
        text = f"the one worker in group {group!r} has {free} free slots"
    yield RunFinding(
        Layer.WORKERS,
        text,
        waits=free == 0,
        code=Code.WORKERS_SLOTS,
        arguments={"group": group, "workers": len(slots), "free": free},
    )


def of_result(attempt: TaskInstance) -> RunFinding:
    """Why an attempt has ended as it has."""
    causes = {
        SkipCause.DISABLED: "the definition says enabled: false",
        SkipCause.NOT_SELECTED: "the run is about other tasks",
        SkipCause.BRANCH: "its branch was not taken",
        SkipCause.UPSTREAM: "something before it failed",
        SkipCause.FAILING: "the failure strategy starts nothing more",
    }
    text = f"it is {attempt.state}"
    if attempt.skip_cause is not None:
        text += f" ({causes[attempt.skip_cause]})"
    if attempt.reason:
        text += f": {attempt.reason}"
    return RunFinding(
        Layer.RESULT,
        text,
        waits=False,
        code=Code.RESULT_TASK,
        arguments={
            "state": attempt.state.value,
            "cause": attempt.skip_cause.value if attempt.skip_cause else None,
            "reason": attempt.reason,
        },
    )
