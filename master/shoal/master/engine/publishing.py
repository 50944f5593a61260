"""Files that attempts hand over: part of the transaction that stores their success.

Whether they can become resources shows in that transaction alone. If not, nothing of the batch is
stored, and it is decided again with the failure of that attempt in place of its success.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from shoal.core.runs.events import TaskEnded
from shoal.core.runs.run import Decision, Run
from shoal.core.runs.states import TaskSignal, TaskState
from shoal.master.dispatch.publications import NotPublished, Publications
from shoal.master.engine.batch import Item
from shoal.runtime import failpoints
from shoal.runtime.storage import Limits
from shoal.sql import UnitOfWork

#: Those of a cluster that needs no name, as it is the only one.
NO_NAME = Publications("", Limits(file=1 << 30, project=10 << 30))


class Refused(Exception):
    """What an attempt hands over cannot become resources."""

    def __init__(self, item: Item, why: NotPublished) -> None:
        self._item, self._why = item, why
        super().__init__(str(why))

    def become_a_failure(self) -> None:
        """Let the event of the attempt be that it has failed."""
        event = self._item.event
        assert isinstance(event, TaskEnded)
        self._item.event = replace(
            event,
            signal=TaskSignal.FAIL,
            reason=str(self._why),
            outputs={},
            permanent=self._why.permanent,
        )


def note_success(item: Item, run: Run, decision: Decision) -> None:
    """Note whether an attempt has succeeded by an event. ``decision`` is applied to ``run``.

    A report that is repeated, or comes from a worker that was given up, changes nothing.
    """
    event = item.event
    item.has_succeeded = False
    if isinstance(event, TaskEnded) and event.signal is TaskSignal.SUCCEED:
        attempt = run.attempt_by_id(event.task_instance_id)
        item.has_succeeded = (
            attempt is not None
            and attempt.state is TaskState.SUCCEEDED
            and (attempt.task, attempt.number) in decision.moved
        )


async def publish(
    uow: UnitOfWork,
    publications: Publications,
    items: Sequence[Item],
    runs: Mapping[int, Run],
    at: datetime,
) -> bool:
    """Make the files of attempts that have succeeded resources; return whether there are any.

    Raises Refused, SqlError.
    """
    found = False
    for item in items:
        if not item.has_succeeded:
            continue
        assert isinstance(item.event, TaskEnded)
        run = runs[item.instance_id]
        attempt = run.attempt_by_id(item.event.task_instance_id)
        if attempt is None or not run.plan.tasks[attempt.task].publish:
            continue
        found = True
        try:
            await publications.store(uow, run, attempt, item.published, at)
        except NotPublished as error:
            raise Refused(item, error) from error
    if found:
        failpoints.hit("publish.before_commit")
    return found
