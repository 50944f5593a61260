"""The base of task types whose work is a Python function in a process of its own."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, TypeVar

from shoal.core.data_sources import DataSource
from shoal.core.task_types import (
    Exit,
    Settling,
    SparkConnect,
    TaskContext,
    TaskParams,
    TaskType,
)
from shoal.worker.types.child import outcome
from shoal.worker.types.child.request import WorkRequest

P = TypeVar("P", bound=TaskParams)


class ChildType(TaskType[P]):
    """A type whose ``work`` is a function of a ``work.Work``: ``package.module:function``.

    It is imported in the process alone, with whatever it needs. It returns None, or a coroutine
    that does the work. With ``settles`` its module also has ``settle``, which ends what an attempt
    that could not end it itself has left running elsewhere; the attempt is over only after that.
    """

    work: ClassVar[str]
    settles: ClassVar[bool] = False
    uses_environment = False  # unless the work starts a program
    permanent_exit_codes = frozenset({outcome.PERMANENT})

    async def run(self, context: TaskContext, params: P) -> Exit:
        """See TaskType."""
        if any(map(is_kept_by_worker, context.data_sources.values())):
            await context.spark_connect()
        request = self._request(context, params)
        return await context.run_process(argv(context), stdin=request.to_json())

    def failure(self, work_dir: Path) -> str | None:
        """See TaskType."""
        return outcome.read_reason(work_dir)

    def again_s(self, work_dir: Path) -> float | None:
        """See TaskType."""
        return outcome.read_again_s(work_dir)

    def not_repeatable(self, work_dir: Path) -> str | None:
        """See TaskType."""
        return outcome.read_not_repeatable(work_dir)

    def settling(self, context: TaskContext, params: P) -> Settling | None:
        """See TaskType."""
        if not self.settles or outcome.is_settled(context.work_dir):
            return None
        request = replace(self._request(context, params), settle=True)
        return Settling(argv(context), request.to_json())

    def _request(self, context: TaskContext, params: P) -> WorkRequest:
        return WorkRequest(
            work=self.work,
            task_type=f"{type(self).__module__}:{type(self).__qualname__}",
            params=params.model_dump(mode="json"),
            parameters=context.parameters,
            task_instance_id=context.task_instance_id,
            attempt=context.attempt,
            tag=context.tag,
            looks=context.looks,
            waiting_since=context.waiting_since,
            secrets=context.secrets,
            data_sources={
                name: _with_address(source, context.spark)
                for name, source in context.data_sources.items()
            },
            settings=context.settings,
            timeout_s=context.timeout_s,
        )


def argv(context: TaskContext | None = None) -> list[str]:
    """Return the command line of the process; what it is to do comes by its standard input.

    In an environment of the task's, what that says to Python is for programs that it starts.
    """
    alone = ["-E"] if context is not None and context.environment else []
    return [sys.executable, *alone, "-P", "-u", "-m", "shoal.worker.types.child"]


def is_kept_by_worker(source: DataSource) -> bool:
    """Return whether a data source is the Spark Connect server that the worker keeps itself."""
    return source.kind == "spark" and not source.host


def _with_address(source: DataSource, server: SparkConnect | None) -> DataSource:
    if server is None or not is_kept_by_worker(source):
        return source
    return replace(source, host="localhost", port=server.port, user="", password=server.token)
