"""What is sent for each operation about instances.

Made from ``docs/openapi.json`` by ``make contract``; not for editing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from shoal.client.rest.operations.call import Call, part

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated import types


def change_labels(instance_id: int, body: types.LabelChanges) -> Call[types.LabelsOut]:
    """Change the labels of an instance.

    Sets the labels that are named, and removes those whose value is null; others stay.

    So two who change different labels at the same time do not undo each other.
    """
    return Call("PATCH", f"/instances/{part(str(instance_id))}/labels", body=body, repeat=True)


def compare_instances(instance_id: int, other_instance_id: int) -> Call[types.Comparison]:
    """Compare two instances.

    How the other run differs from this one: parameters, labels, and each task.

    They may be of different versions, or of different workflows: tasks are matched by name.
    """
    return Call(
        "GET", f"/instances/{part(str(instance_id))}/comparison/{part(str(other_instance_id))}"
    )


def count_instances(
    *,
    project: str | None = None,
    label: Sequence[str] | None = None,
    workflow: str | None = None,
    started_since: str | datetime | None = None,
    started_until: str | datetime | None = None,
    finished_since: str | datetime | None = None,
    finished_until: str | datetime | None = None,
    shortest: float | None = None,
    longest: float | None = None,
    text: str | None = None,
    state: Sequence[types.WorkflowState] | None = None,
    schedule_id: int | None = None,
    backfill_id: int | None = None,
    parent_id: int | None = None,
    rerun_of: int | None = None,
    version: int | None = None,
    priority: Sequence[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]] | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    logical_since: str | datetime | None = None,
    logical_until: str | datetime | None = None,
    late: bool | None = None,
) -> Call[types.InstanceCounts]:
    """Count workflow instances by state.

    How many instances fulfil all filters, in all and in each state.

    Nothing is counted beyond 1,000 (`is_more`). What no index serves is counted among the newest
    2,000 that the other filters leave.
    """
    return Call(
        "GET",
        "/instance-counts",
        query={
            "project": project,
            "label": label,
            "workflow": workflow,
            "started_since": started_since,
            "started_until": started_until,
            "finished_since": finished_since,
            "finished_until": finished_until,
            "shortest": shortest,
            "longest": longest,
            "text": text,
            "state": state,
            "schedule_id": schedule_id,
            "backfill_id": backfill_id,
            "parent_id": parent_id,
            "rerun_of": rerun_of,
            "version": version,
            "priority": priority,
            "since": since,
            "until": until,
            "logical_since": logical_since,
            "logical_until": logical_until,
            "late": late,
        },
    )


def count_task_instances(
    *,
    project: str | None = None,
    label: Sequence[str] | None = None,
    workflow: str | None = None,
    started_since: str | datetime | None = None,
    started_until: str | datetime | None = None,
    finished_since: str | datetime | None = None,
    finished_until: str | datetime | None = None,
    shortest: float | None = None,
    longest: float | None = None,
    text: str | None = None,
    state: Sequence[types.TaskState] | None = None,
    worker: str | None = None,
    instance_id: int | None = None,
    task: str | None = None,
    type_: str | None = None,
    worker_group: str | None = None,
    environment: str | None = None,
    fingerprint: str | None = None,
) -> Call[types.TaskCounts]:
    """Count task instances by state.

    How many attempts fulfil all filters, in all and in each state, among the newest 2,000.
    """
    return Call(
        "GET",
        "/task-instance-counts",
        query={
            "project": project,
            "label": label,
            "workflow": workflow,
            "started_since": started_since,
            "started_until": started_until,
            "finished_since": finished_since,
            "finished_until": finished_until,
            "shortest": shortest,
            "longest": longest,
            "text": text,
            "state": state,
            "worker": worker,
            "instance_id": instance_id,
            "task": task,
            "type": type_,
            "worker_group": worker_group,
            "environment": environment,
            "fingerprint": fingerprint,
        },
    )


def explain_instance(instance_id: int) -> Call[types.WhyOut]:
    """Explain what an instance waits for.

    What every layer says: overlap, partition, its open tasks and what each of them waits for.
    """
    return Call("GET", f"/instances/{part(str(instance_id))}/why")


def explain_task_instance(task_instance_id: int) -> Call[types.WhyOut]:
    """Explain what a task instance waits for.

    What every layer says about one attempt, or why it ended as it has.
    """
    return Call("GET", f"/task-instances/{part(str(task_instance_id))}/why")


def get_instance(
    instance_id: int, *, attempts: Literal["newest", "all"] | None = None
) -> Call[types.InstanceDetail]:
    """Show an instance.

    An instance with its tasks in the order of the definition.
    """
    return Call("GET", f"/instances/{part(str(instance_id))}", query={"attempts": attempts})


def get_progress(instance_id: int) -> Call[Sequence[types.ProgressOut]]:
    """Show how far the running tasks are.

    What the work of running tasks says of itself, as far as it says anything.

    At most 1,000 tasks. A worker that does not answer within seconds is left out.
    """
    return Call("GET", f"/instances/{part(str(instance_id))}/progress")


def get_rendered_attempt(task_instance_id: int) -> Call[types.RenderedOut]:
    """Show what an attempt gets.

    Params and parameters of one attempt, rendered from what its run holds now.

    Secrets are masked. If tasks before it have run again since, the outputs are theirs.
    """
    return Call("GET", f"/task-instances/{part(str(task_instance_id))}/rendered")


def get_timeline(instance_id: int, *, every: bool | None = None) -> Call[types.Timeline]:
    """Show when the tasks of an instance worked.

    A bar for each attempt, and the path of tasks that made the run last as long as it did.
    """
    return Call("GET", f"/instances/{part(str(instance_id))}/timeline", query={"every": every})


def get_today(
    *,
    project: str | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.TodayOut]:
    """Show what happens around now.

    Runs that began in the window or are open, by workflow, with what fires until its end.

    Workflows with something late come first, then those with a run that has failed and that
    no newer one has made good, then those that wait. Late is a schedule that has not fired a
    minute after its time, and a run beyond its timeout or its deadline. Between two pages a
    workflow may move to another place.
    """
    return Call(
        "GET",
        "/today",
        query={
            "project": project,
            "since": since,
            "until": until,
            "limit": limit,
            "cursor": cursor,
        },
    )


def list_instances(
    *,
    project: str | None = None,
    label: Sequence[str] | None = None,
    workflow: str | None = None,
    started_since: str | datetime | None = None,
    started_until: str | datetime | None = None,
    finished_since: str | datetime | None = None,
    finished_until: str | datetime | None = None,
    shortest: float | None = None,
    longest: float | None = None,
    text: str | None = None,
    state: Sequence[types.WorkflowState] | None = None,
    schedule_id: int | None = None,
    backfill_id: int | None = None,
    parent_id: int | None = None,
    rerun_of: int | None = None,
    version: int | None = None,
    priority: Sequence[Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]] | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    logical_since: str | datetime | None = None,
    logical_until: str | datetime | None = None,
    late: bool | None = None,
    sort: Literal[
        "created_at",
        "-created_at",
        "logical_time",
        "-logical_time",
        "started_at",
        "-started_at",
        "finished_at",
        "-finished_at",
        "duration",
        "-duration",
        "priority",
        "-priority",
    ]
    | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[types.InstancePage]:
    """List workflow instances.

    Instances that fulfil all filters, newest first unless `sort` says otherwise.

    Project, workflow, state, time of creation, schedule, backfill, parent and the first label have
    indices. What else is asked for is looked for among what these leave, a part of the history for
    each page: a page may have fewer items than asked for, even none, although more follow. The list
    is over when `next` is null.
    """
    return Call(
        "GET",
        "/instances",
        query={
            "project": project,
            "label": label,
            "workflow": workflow,
            "started_since": started_since,
            "started_until": started_until,
            "finished_since": finished_since,
            "finished_until": finished_until,
            "shortest": shortest,
            "longest": longest,
            "text": text,
            "state": state,
            "schedule_id": schedule_id,
            "backfill_id": backfill_id,
            "parent_id": parent_id,
            "rerun_of": rerun_of,
            "version": version,
            "priority": priority,
            "since": since,
            "until": until,
            "logical_since": logical_since,
            "logical_until": logical_until,
            "late": late,
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
        },
    )


def preview_start(body: types.StartPreviewIn) -> Call[types.StartPreview]:
    """Show what a start would run.

    The version, the parameters, the tasks and what each would get, for a date. Stores nothing.

    Of what is published, or of the `text` of a draft. Secrets are masked. What only a run can know
    is missing: outputs of tasks before, ids.
    """
    return Call("POST", "/start-previews", body=body, repeat=True)
