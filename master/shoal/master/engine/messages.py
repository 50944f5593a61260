"""Messages between a run and its sub-workflows: ``Decision.messages`` as commands.

A message is a command in the partition of its receiver, stored in the transaction of the decision
that sends it. So it arrives, whichever process dies, and in the order in which it was sent.

A child is addressed by its START command's key, ``child:<task instance>:<item>``: a task starts
each item once. The state of a child comes back as a CHILD command.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from shoal.coordination import partition_of
from shoal.core.access.grants import Grant
from shoal.core.runs.commands import Command, CommandType, NewCommand, Parent
from shoal.core.runs.events import ChildChanged
from shoal.core.runs.run import AskChild, AttemptKey, Decision, Run, StartChild, TellParent
from shoal.core.runs.states import WorkflowState
from shoal.runtime import failpoints
from shoal.sql import UnitOfWork
from shoal.sql.errors import NotFound, UnreadableRow

DEEPEST = 20  # levels of sub-workflows; deeper ones are taken for a workflow that runs itself
REQUESTED_BY = "sub-workflow"
_NO_REQUEST = -1  # a child's requests have the numbers from 0, its start, onwards

Change = tuple[Run, Decision]
NewIds = Mapping[tuple[int, str, int], int]  # (instance, task, attempt number) -> task instance


class Messenger:
    """Stores messages. ``partitions``: how many the cluster has."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    async def send(
        self, uow: UnitOfWork, changes: Sequence[Change], new_ids: NewIds, at: datetime
    ) -> set[int]:
        """Store all messages of these decisions; return the partitions that they are for.

        The caller has stored the decisions in the same transaction; ``new_ids`` are the ids that
        their new attempts were given.
        """
        if not any(decision.messages for _, decision in changes):
            return set()
        senders = [_Sender(run, decision, new_ids) for run, decision in changes]
        sent = [(sender, message) for sender in senders for message in sender.decision.messages]
        news = [
            _news(
                m.parent,
                s.run.id,
                m.state,
                m.reason,
                outputs=dict(m.outputs),
                refused=m.refused,
            )
            for s, m in sent
            if isinstance(m, TellParent)
        ]
        starts = [(s, m) for s, m in sent if isinstance(m, StartChild)]
        stored = await uow.commands.send_many(await self._starts(uow, starts, news), at)
        asks = await _asks(uow, [(s, m) for s, m in sent if isinstance(m, AskChild)])
        stored += await uow.commands.send_many([*asks, *await news_commands(uow, news)], at)
        failpoints.hit("message.before_commit")
        return {command.partition for command in stored}

    async def _starts(
        self,
        uow: UnitOfWork,
        starts: "Sequence[tuple[_Sender, StartChild]]",
        news: "list[News]",
    ) -> list[NewCommand]:
        """Return the START commands; what cannot be started goes to ``news``."""
        ids: dict[tuple[str, str], int | None] = {}
        commands = []
        pairs = {(start.project, sender.run.plan.spec.project) for sender, start in starts}
        given = await uow.grants.given(pairs, Grant.RUN)
        for sender, start in starts:
            parent = sender.parent(start.key, start.index)
            name = (start.project, start.workflow)
            if (start.project, taker := sender.run.plan.spec.project) not in given:
                news.append(refusal_of(parent, _not_given(start, taker)))
                continue
            if name not in ids:
                try:
                    ids[name] = (await uow.workflows.get(*name)).id
                except NotFound:
                    ids[name] = None
            workflow_id = ids[name]
            if parent.depth > DEEPEST:
                reason = (
                    f"sub-workflows are nested deeper than {DEEPEST} levels; does one of them, "
                    "directly or not, run itself?"
                )
                news.append(refusal_of(parent, reason))
                continue
            if workflow_id is None:
                reason = f"there is no workflow {start.project}/{start.workflow}"
                news.append(refusal_of(parent, reason))
                continue
            run, key = sender.run, start_key(parent)
            commands.append(
                NewCommand(
                    CommandType.START,
                    partition_of(key, self._partitions),
                    key,
                    workflow_id,
                    version=start.version,
                    parameters=dict(start.parameters),
                    logical_time=run.logical_time,
                    timezone=run.timezone,
                    priority=run.priority,
                    requested_by=REQUESTED_BY,
                    parent=parent,
                    backfill_id=run.backfill_id,
                )
            )
        return commands


def start_key(parent: Parent) -> str:
    """Return the idempotency key of the command that starts a child."""
    return f"child:{parent.task_instance_id}:{parent.index}"


def _not_given(start: StartChild, taker: str) -> str:
    """The same words whether there is such a project or not."""
    return (
        f"there is no workflow {start.project}/{start.workflow} that project {taker} may run; if "
        f"there is one, an owner of {start.project} can let it: shoal grant set {taker} run "
        f"--project {start.project}"
    )


class _Sender:
    """A run that sends messages, as it is after its decision."""

    def __init__(self, run: Run, decision: Decision, new_ids: NewIds) -> None:
        self.run = run
        self.decision = decision
        self._new_ids = new_ids

    def parent(self, key: AttemptKey, index: int, ask: int = 0) -> Parent:
        """Return one of its attempts as the parent of a child."""
        attempt_id = self.decision.attempts[key].id or self._new_ids[self.run.id, *key]
        own = self.run.parent
        depth = 1 if own is None else own.depth + 1
        above = () if own is None else (*own.ancestors, own.instance_id)
        return Parent(self.run.id, attempt_id, self.run.partition, index, depth, ask, above)


async def _asks(uow: UnitOfWork, asks: Sequence[tuple[_Sender, AskChild]]) -> list[NewCommand]:
    """Return the requests to children. One that could not be started needs none."""
    parents = [sender.parent(ask.key, ask.index, ask.number) for sender, ask in asks]
    homes = await uow.instances.homes(
        {ask.instance_id for _, ask in asks if ask.instance_id is not None}
    )
    damaged: dict[str, UnreadableRow] = {}
    started = await uow.commands.sent(
        {start_key(p) for p, (_, ask) in zip(parents, asks, strict=True) if not ask.instance_id},
        damaged,
    )
    above = await uow.instances.homes({parent.instance_id for parent in parents} if damaged else ())
    commands = []
    for parent, (_, ask) in zip(parents, asks, strict=True):
        if ask.instance_id is not None:
            workflow_id, partition = homes[ask.instance_id]
        elif (start := started.get(start_key(parent))) is not None:
            workflow_id, partition = start.workflow_id, start.partition
        elif (row := damaged.get(start_key(parent))) is not None:
            # Its owner finds out what became of it; the foreign key wants any workflow.
            workflow_id, partition = above[parent.instance_id][0], row.partition
        else:
            continue  # the refusal of its start has been sent, or will be
        commands.append(
            NewCommand(
                ask.type,
                partition,
                f"ask:{uuid.uuid4()}",
                workflow_id,
                instance_id=ask.instance_id,
                requested_by=REQUESTED_BY,
                parent=parent,
            )
        )
    return commands


# -- the states of children ---------------------------------------------------------------------

News = tuple[Parent, Mapping[str, Any]]  # the receiver, and the ``detail`` of the CHILD command


def refusal_of(parent: Parent, reason: str, instance_id: int | None = None) -> News:
    """Return the news that a child could not be started, or not be asked."""
    return _news(parent, instance_id, None, reason)


def waiting(parent: Parent, instance_id: int) -> News:
    """Return the news that a child is there, and waits for other runs of its workflow."""
    return _news(parent, instance_id, WorkflowState.QUEUED, None)


async def tell_of_quarantine(
    uow: UnitOfWork,
    at: datetime,
    instance_ids: Collection[int] = (),
    start_ids: Collection[int] = (),
    *,
    is_quarantined: bool,
) -> set[int]:
    """Store, for their parents, that children are quarantined or tried again.

    ``start_ids``: of START commands of children; ids of other commands are ignored. Return the
    partitions that the messages are for.
    """
    parents = await uow.instances.parents(instance_ids)
    parents |= await uow.commands.asking_parents(instance_ids)
    children: list[tuple[int | None, Parent]] = [
        *parents.items(),
        *((None, parent) for parent in (await uow.commands.parents(start_ids)).values()),
    ]
    if not children:
        return set()
    # Masters of former versions take this for the answer to a former request, and ignore it.
    none_asked = {"ask": _NO_REQUEST, "quarantined": is_quarantined}
    news = [_news(parent, child, None, None, **none_asked) for child, parent in children]
    stored = await uow.commands.send_many(await news_commands(uow, news), at)
    return {command.partition for command in stored}


def _news(
    parent: Parent,
    instance_id: int | None,
    state: WorkflowState | None,
    reason: str | None,
    **more: Any,
) -> News:
    detail = {
        "task_instance_id": parent.task_instance_id,
        "index": parent.index,
        # A refusal is final, whatever else the child was to be asked.
        "ask": None if state is None else parent.ask,
        "instance_id": instance_id,
        "state": state,
        "reason": reason,
        **more,
    }
    return parent, detail


async def news_commands(uow: UnitOfWork, news: Iterable[News]) -> list[NewCommand]:
    """Return the CHILD commands that carry ``news`` to the parents' tasks."""
    news = list(news)
    homes = await uow.instances.homes({parent.instance_id for parent, _ in news})
    return [
        NewCommand(
            CommandType.CHILD,
            parent.partition,
            f"tell:{uuid.uuid4()}",
            homes[parent.instance_id][0],
            instance_id=parent.instance_id,
            requested_by=REQUESTED_BY,
            detail=detail,
        )
        for parent, detail in news
        if parent.instance_id in homes
    ]


def child_event(command: Command, at: datetime) -> ChildChanged:
    """Return the event of a CHILD command."""
    detail = command.detail
    state = detail["state"]
    return ChildChanged(
        task_instance_id=detail["task_instance_id"],
        index=detail["index"],
        at=at,
        instance_id=detail["instance_id"],
        state=None if state is None else WorkflowState(state),
        reason=detail["reason"],
        outputs=detail.get("outputs", {}),
        ask=detail["ask"],
        refused=detail.get("refused", False),
        is_quarantined=detail.get("quarantined"),
    )
