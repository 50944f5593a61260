"""What a message is about, as the database has it now."""

from collections.abc import Sequence
from datetime import datetime

from shoal.core.alerts.messages.message import MessageFacts, RunFacts
from shoal.core.alerts.occurrences import WITH_RESULTS
from shoal.core.alerts.records import AlertDelivery
from shoal.core.runs.states import TaskState
from shoal.sql.repositories.alerts.alerts import Alerts
from shoal.sql.repositories.runs.instances import Instances
from shoal.sql.repositories.runs.tasks import TaskRepository

_MOST_ALERTS = 50  # that a message lists
_MOST_RUNS = 3  # whose tasks it lists
_MOST_TASKS = 30  # of a run
_MOST_RESULTS = 3
_TROUBLE = frozenset({TaskState.FAILED, TaskState.LOST, TaskState.KILLED})


class AlertFacts:
    """Reads alerts, their runs, and the tasks of these."""

    def __init__(self, alerts: Alerts, instances: Instances, tasks: TaskRepository) -> None:
        self._alerts, self._instances, self._tasks = alerts, instances, tasks

    async def read(
        self, delivery: AlertDelivery, alert_ids: Sequence[int], now: datetime
    ) -> MessageFacts:
        """Return what a message says of these alerts."""
        alerts = await self._alerts.known(alert_ids[-_MOST_ALERTS:])
        wanted = dict.fromkeys(one.instance_id for one in alerts if one.instance_id is not None)
        runs = {}
        for number, run in enumerate(await self._instances.known(list(wanted))):
            tasks = await self._tasks.of_instance(run.id) if number < _MOST_RUNS else []
            tasks = sorted(tasks, key=lambda one: one.state not in _TROUBLE)
            runs[run.id] = RunFacts(run, tasks[:_MOST_TASKS], max(0, len(tasks) - _MOST_TASKS))
        told = [
            one.task_instance_id
            for one in alerts
            if one.trigger in WITH_RESULTS and one.task_instance_id is not None
        ]
        results = {one.id: one for one in await self._tasks.known(told[-_MOST_RESULTS:])}
        return MessageFacts(delivery, alerts, len(alert_ids), runs, now, results)
