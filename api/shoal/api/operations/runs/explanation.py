"""Why is it not running? What every layer says about an instance or a task instance."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from shoal.api.operations.cluster.view import ClusterView
from shoal.api.operations.insight.baselines import BaselineCache, expected_by_tasks
from shoal.api.web.store import Store
from shoal.coordination import QueueEntry
from shoal.coordination.queue import lane_of
from shoal.core.definition.kinds import LASTING, WITH_CHILDREN, is_logic
from shoal.core.definition.model import Overlap
from shoal.core.insight import expectation
from shoal.core.runs.overlap import OverlapPolicy
from shoal.core.runs.quarantine import ItemKind
from shoal.core.runs.records import Instance, TaskInstance
from shoal.core.runs.run import WorkflowPlan
from shoal.core.runs.states import FINISHED_TASK, FINISHED_WORKFLOW, TaskState, WorkflowState
from shoal.core.runs.why import findings as why
from shoal.core.runs.why.codes import Argument, Code
from shoal.core.runs.why.findings import Layer, RunFinding
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound

_T, _W = TaskState, WorkflowState
# Counted or listed for an answer, at most:
_MOST_AHEAD = 10_000
_MOST_HOLDERS = 5
_MOST_WAITERS = 1_000
_MOST_TASKS = 20  # of an instance, explained one by one


@dataclass(frozen=True)
class ExplainedRun:
    """An instance as stored, with the newest attempt of each task."""

    instance: Instance
    plan: WorkflowPlan
    tasks: dict[str, TaskInstance]


async def of_instance(
    store: Store, cluster: ClusterView, baselines: BaselineCache, instance_id: int
) -> tuple[ExplainedRun, list[RunFinding]]:
    """Return what an instance waits for. Raises NotFound."""
    async with store.unit_of_work(read_only=True) as uow:
        facts = await _facts(uow, instance_id)
        findings = [one async for one in _of_instance(uow, facts)]
        now = store.clock()
        coming = await expected_by_tasks(
            uow, baselines, facts.instance, facts.plan.upstream, facts.tasks, now
        )
        findings += expectation.findings(coming, now)
    if facts.instance.state in FINISHED_WORKFLOW:
        return facts, findings
    findings += await _of_partition(cluster, facts.instance.partition)
    if facts.instance.state is _W.QUEUED:
        return facts, findings
    open_ = [t for t in facts.tasks.values() if t.state not in FINISHED_TASK]
    shown = [t for t in open_ if t.state is not _T.WAITING][:_MOST_TASKS]
    for task in shown:
        async for finding in _of_task(store, cluster, facts, task):
            text = f"{task.task}: {finding.text}"
            arguments = {"task": task.task, **finding.arguments}
            findings.append(
                replace(finding, text=text, task_instance_id=task.id, arguments=arguments)
            )
    waiting = sum(t.state is _T.WAITING for t in open_)
    if waiting:
        text = (
            f"{waiting} tasks wait for those before them"
            if waiting > 1
            else ("1 task waits for those before it")
        )
        findings.append(
            RunFinding(
                Layer.UPSTREAM, text, code=Code.UPSTREAM_WAITING, arguments={"tasks": waiting}
            )
        )
    if len(open_) - waiting > len(shown):
        more = len(open_) - waiting - len(shown)
        findings.append(
            RunFinding(
                Layer.INSTANCE,
                f"… and {more} more tasks",
                waits=False,
                code=Code.INSTANCE_MORE_TASKS,
                arguments={"tasks": more},
            )
        )
    return facts, findings


async def of_task(
    store: Store, cluster: ClusterView, task_instance_id: int
) -> tuple[ExplainedRun, TaskInstance, list[RunFinding]]:
    """Return what an attempt waits for, or why it ended. Raises NotFound."""
    async with store.unit_of_work(read_only=True) as uow:
        attempt = await uow.tasks.get(task_instance_id)
        facts = await _facts(uow, attempt.workflow_instance_id)
        findings: list[RunFinding] = []
        if attempt.state not in FINISHED_TASK:
            findings += [one async for one in _of_instance(uow, facts)]
    newest = facts.tasks[attempt.task]
    if newest.id != attempt.id:
        text = f"attempt {newest.attempt} has followed it and is {newest.state}"
        findings.append(
            RunFinding(
                Layer.RESULT,
                text,
                False,
                task_instance_id=newest.id,
                code=Code.RESULT_NEWER_ATTEMPT,
                arguments={"attempt": newest.attempt, "state": newest.state.value},
            )
        )
    if attempt.state not in FINISHED_TASK:
        findings += await _of_partition(cluster, facts.instance.partition)
    findings += [one async for one in _of_task(store, cluster, facts, attempt)]
    return facts, attempt, findings


async def _facts(uow: UnitOfWork, instance_id: int) -> ExplainedRun:
    instance = await uow.instances.get(instance_id)
    version = await uow.workflows.version(instance.workflow_id, instance.version)
    tasks = await uow.tasks.of_instance(instance_id)
    plan = await asyncio.to_thread(WorkflowPlan.of, version.spec)  # of thousands of tasks, perhaps
    return ExplainedRun(instance, plan, {task.task: task for task in tasks})


async def _of_instance(uow: UnitOfWork, facts: ExplainedRun) -> AsyncIterator[RunFinding]:
    instance = facts.instance
    if (aside := await uow.quarantine.of(ItemKind.INSTANCE, instance.id)) is not None:
        yield why.of_quarantine(aside, facts.tasks.values())
    match instance.state:
        case _W.QUEUED if instance.admitted_at is None:
            async for finding in _of_overlap(uow, instance):
                yield finding
        case _W.QUEUED:
            text = "its master is about to start it"
            yield RunFinding(Layer.INSTANCE, text, code=Code.RUN_STARTING)
        case _W.PAUSED | _W.PAUSING:
            text = f"it is {instance.state}; `shoal resume {instance.id}` goes on"
            arguments: dict[str, Argument] = {"state": instance.state.value}
            yield RunFinding(Layer.INSTANCE, text, code=Code.RUN_PAUSED, arguments=arguments)
        case _W.STOPPING:
            text = "it is being stopped: what runs is being killed"
            yield RunFinding(Layer.INSTANCE, text, code=Code.RUN_STOPPING)
        case state if state in FINISHED_WORKFLOW:
            text = f"it is {state}" + (f": {instance.reason}" if instance.reason else "")
            yield RunFinding(
                Layer.RESULT,
                text,
                waits=False,
                code=Code.RESULT_INSTANCE,
                arguments={"state": state.value, "reason": instance.reason},
            )
        case _:
            pass


async def _of_overlap(uow: UnitOfWork, instance: Instance) -> AsyncIterator[RunFinding]:
    """Which runs of the workflow are before one that waits for its admission."""
    newest = await uow.workflows.version(instance.workflow_id, None)
    policy = OverlapPolicy.of(newest.spec)
    if policy.overlap is Overlap.ALLOW:
        text = "it may start: the next look of a master admits it"
        yield RunFinding(Layer.OVERLAP, text, code=Code.OVERLAP_ADMITS)
        return
    lineup = await uow.admission.lineup(instance.workflow_id, policy)
    yield RunFinding(
        Layer.OVERLAP,
        f"overlap is {policy.overlap}: {lineup.active} of at most {policy.max_active} runs of "
        f"{instance.project}/{instance.workflow} are active, {lineup.waiting_count} wait",
        code=Code.OVERLAP_LINEUP,
        arguments={
            "overlap": policy.overlap.value,
            "active": lineup.active,
            "max_active": policy.max_active,
            "waiting": lineup.waiting_count,
        },
    )
    active = await uow.instances.list(
        project=instance.project,
        workflow=instance.workflow,
        states=[_W.RUNNING, _W.PAUSING, _W.PAUSED, _W.STOPPING],
        limit=5,
    )
    for other in active:
        text = f"instance {other.id} of {other.logical_time.isoformat()} is {other.state}"
        yield RunFinding(
            Layer.OVERLAP,
            text,
            instance_id=other.id,
            code=Code.OVERLAP_INSTANCE,
            arguments={
                "instance": other.id,
                "logical_time": other.logical_time.isoformat(),
                "state": other.state.value,
            },
        )


async def _of_partition(cluster: ClusterView, partition: int) -> list[RunFinding]:
    owner = await cluster.owners.owner_of(partition)
    if owner is None:
        text = f"no master owns partition {partition} now; is one running? see `shoal status`"
        unowned: dict[str, Argument] = {"partition": partition}
        return [RunFinding(Layer.PARTITION, text, code=Code.PARTITION_UNOWNED, arguments=unowned)]
    text = f"master {owner.owner_id} owns partition {partition} (epoch {owner.epoch})"
    return [
        RunFinding(
            Layer.PARTITION,
            text,
            waits=False,
            code=Code.PARTITION_OWNER,
            arguments={
                "master": owner.owner_id,
                "partition": partition,
                "epoch": owner.epoch,
            },
        )
    ]


async def _of_task(
    store: Store, cluster: ClusterView, facts: ExplainedRun, attempt: TaskInstance
) -> AsyncIterator[RunFinding]:
    if attempt.state not in FINISHED_TASK:
        for finding in why.of_looks(attempt):
            yield finding
    match attempt.state:
        case _T.WAITING:
            for finding in why.of_upstream(facts.plan, facts.tasks, attempt.task):
                yield finding
        case _T.DELAYED | _T.UP_FOR_RETRY:
            for finding in why.of_delay(attempt, store.clock()):
                yield finding
        case _T.PAUSED:
            text = "it is ready, but the instance is being paused"
            yield RunFinding(Layer.INSTANCE, text, code=Code.TASK_HELD)
        case _T.BLOCKED:
            async for finding in _of_slots(store, facts, attempt):
                yield finding
        case _T.QUEUED:
            for finding in await _of_queue(cluster, facts, attempt):
                yield finding
        case _T.CLAIMED:
            text = f"worker {attempt.worker} has taken it and starts its process"
            yield RunFinding(
                Layer.WORKERS,
                text,
                code=Code.WORKERS_STARTING,
                arguments={"worker": attempt.worker},
            )
        case _T.RUNNING:
            for finding in _of_running(attempt):
                yield finding
        case _:
            yield why.of_result(attempt)


def _of_running(attempt: TaskInstance) -> Iterator[RunFinding]:
    since = attempt.started_at.isoformat() if attempt.started_at else "a moment ago"
    if not is_logic(attempt.type):
        text = f"it runs on worker {attempt.worker} since {since}"
        yield RunFinding(
            Layer.WORKERS,
            text,
            waits=False,
            code=Code.WORKERS_RUNS,
            arguments={"worker": attempt.worker, "since": _iso(attempt.started_at)},
        )
        return
    if attempt.type in LASTING:
        yield RunFinding(
            Layer.PARTITION,
            f"its master works on it since {since}",
            waits=False,
            code=Code.PARTITION_WORKS,
            arguments={"since": _iso(attempt.started_at)},
        )
    if attempt.type in WITH_CHILDREN:
        yield from why.of_children(attempt.detail)
    elif attempt.detail:
        yield from why.of_dependencies(attempt.detail)
    else:
        text = "its master is about to look for the runs"
        yield RunFinding(Layer.DEPENDENCY, text, code=Code.DEPENDENCY_LOOKING)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


async def _of_queue(
    cluster: ClusterView, facts: ExplainedRun, attempt: TaskInstance
) -> list[RunFinding]:
    spec = facts.plan.tasks[attempt.task]
    entry = QueueEntry(
        group=attempt.worker_group,
        workflow_priority=facts.instance.priority,
        workflow_instance_id=facts.instance.id,
        task_priority=int(spec.priority),
        task_instance_id=attempt.id,
        partition=facts.instance.partition,
        lane=lane_of(facts.instance.project),
    )
    ahead, depth = await asyncio.gather(
        cluster.queue.ahead(entry, _MOST_AHEAD), cluster.queue.depth(attempt.worker_group)
    )
    if ahead is None:
        text = "it is on its way into the queue, or a worker is just taking it"
        place = RunFinding(
            Layer.QUEUE,
            text,
            code=Code.QUEUE_ARRIVING,
            arguments={"group": attempt.worker_group},
        )
    else:
        more = "at least " if ahead >= _MOST_AHEAD else ""
        text = (
            f"it is number {ahead + 1 if not more else f'{more}{ahead}'} of {depth} in the queue "
            f"of worker group {attempt.worker_group!r}"
        )
        place = RunFinding(
            Layer.QUEUE,
            text,
            code=Code.QUEUE_PLACE,
            arguments={
                "group": attempt.worker_group,
                "place": ahead + 1,
                "depth": depth,
                "is_at_least": int(bool(more)),
            },
        )
    workers = [
        (
            member.id,
            _number(member.data.get("slots")),
            _number(member.data.get("running")),
            str(member.data["paused"]) if member.data.get("paused") else None,
        )
        for member in cluster.workers.current().values()
        if member.data.get("group") == attempt.worker_group
    ]
    return [place, *why.of_workers(attempt.worker_group, sorted(workers))]


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


async def _of_slots(
    store: Store, facts: ExplainedRun, attempt: TaskInstance
) -> AsyncIterator[RunFinding]:
    """Who has the slots of the concurrency group, and how many wait before this attempt."""
    name = facts.plan.tasks[attempt.task].concurrency_group or ""
    home = facts.instance.project
    try:
        async with store.unit_of_work(read_only=True) as uow:
            group = await uow.concurrency.get(home, name)
            holders = await uow.concurrency.holders(home, name, _MOST_HOLDERS)
            waiters = await uow.concurrency.waiters(home, name, _MOST_WAITERS)
    except NotFound:
        text = (
            f"there is no concurrency group {name!r} in project {home}; make it with "
            f"`shoal concurrency set {home}/{name} SLOTS`"
        )
        yield RunFinding(
            Layer.CONCURRENCY,
            text,
            code=Code.SLOTS_NO_GROUP,
            arguments={"project": home, "group": name},
        )
        return
    place = [user.task_instance_id for user in waiters]
    where = (
        f"it is number {place.index(attempt.id) + 1} of {group.waiting} that wait"
        if attempt.id in place
        else f"{group.waiting} wait"
    )
    text = f"{group.taken} of {group.slots} slots of concurrency group {name!r} are taken, {where}"
    yield RunFinding(
        Layer.CONCURRENCY,
        text,
        code=Code.SLOTS_TAKEN,
        arguments={
            "group": name,
            "taken": group.taken,
            "slots": group.slots,
            "place": place.index(attempt.id) + 1 if attempt.id in place else None,
            "waiting": group.waiting,
        },
    )
    for user in holders:
        yield RunFinding(
            Layer.CONCURRENCY,
            f"task {user.task} of {user.workflow}, instance {user.workflow_instance_id}, has one",
            instance_id=user.workflow_instance_id,
            task_instance_id=user.task_instance_id,
            code=Code.SLOTS_HOLDER,
            arguments={
                "holder": user.task,
                "workflow": user.workflow,
                "instance": user.workflow_instance_id,
            },
        )
