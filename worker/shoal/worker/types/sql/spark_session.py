"""The session that a program of a task has at the worker's Spark Connect server, seen from outside.

The program finds it by its environment, so it knows nothing of Shoal; only its end is ours.
"""

from shoal.core.task_types import TaskParams
from shoal.worker.types.child.work import Work
from shoal.worker.types.spark.connect import SERVER
from shoal.worker.types.sql.drivers import spark


def settle(work: Work[TaskParams]) -> None:
    """End the sessions that this attempt and the one before may have there. Raises WorkFailed."""
    spark.settle(work.data_source(SERVER), tag=work.tag, attempt=work.attempt)
