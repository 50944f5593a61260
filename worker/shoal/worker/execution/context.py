"""What one attempt may use: its folder, its parameters, and the one process it may run.

The agent prepares an ``AttemptContext`` and passes it to the task type's ``run``.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from shoal.core.data_sources import DataSource
from shoal.core.errors import ShoalError
from shoal.core.task_types import Exit, SparkConnect
from shoal.proto import shoal_pb2 as pb
from shoal.proto.data_sources import from_message
from shoal.worker.processes.environment import Named, Setup, named_environment, prepare_setup
from shoal.worker.processes.variables import (
    base_environment,
    identity,
    parameter_variables,
    secret_variables,
)
from shoal.worker.processes.work_files import (
    OUTPUT_FILE,
    PARAMETERS_FILE,
    make_folder,
    write_new,
)

#: Runs argv with exactly this environment, and this standard input, to its end.
RunProcess = Callable[[Sequence[str], Mapping[str, str], str | None], Awaitable[Exit]]


class SparkAccess(Protocol):
    """What an attempt has of the worker's Spark Connect servers; see TaskContext."""

    async def connect(self) -> SparkConnect: ...

    @property
    def server(self) -> SparkConnect | None: ...


@dataclass(frozen=True)
class Prepared:
    """The folder and the environment of an attempt, ready for its process.

    ``in_file_only`` are the parameters that do not fit into variables, with their sizes in bytes.
    ``named`` is the environment that the workflow names, ``setup`` what is sourced of it.
    """

    work_dir: Path
    output_file: Path  # where the process may write its outputs
    environment: Mapping[str, str]
    in_file_only: Mapping[str, int]
    named: Named
    setup: Setup | None


def prepare(
    payload: pb.Payload,
    work_dir: Path,
    worker_env: Mapping[str, str],
    passed: Sequence[str],
    group: str,
) -> Prepared:
    """Make the attempt's folder ``work_dir`` (0700) with its parameters file. Blocks.

    ``group`` is the worker's. Raises OSError, SecretsTooLarge, EnvironmentUnusable.
    """
    make_folder(work_dir)  # an old one is of an earlier hold on the same attempt: never reported
    parameters = dict(payload.parameters)
    file, output_file = work_dir / PARAMETERS_FILE, work_dir / OUTPUT_FILE
    write_new(file, json.dumps(parameters, ensure_ascii=False).encode("utf-8"), 0o600)
    base = base_environment(worker_env, work_dir, passed)
    named = named_environment(payload, base, group)
    own = {**identity(payload, file, output_file), **secret_variables(payload.secrets)}
    variables = parameter_variables(parameters, taken={*base, *own, *payload.undeclared})
    in_file_only = {
        name: len(value.encode())
        for name, value in sorted(parameters.items())
        if f"SHOAL_PARAM_{name.upper()}" not in variables
    }
    around = {name: value for name, value in base.items() if name not in named.without}
    environment = {**around, **named.variables, **variables, **own}
    setup = prepare_setup(named, work_dir, environment["PATH"], group)
    return Prepared(work_dir, output_file, environment, in_file_only, named, setup)


class AttemptContext:
    """The TaskContext of one attempt."""

    def __init__(
        self,
        payload: pb.Payload,
        prepared: Prepared,
        run: RunProcess,
        spark: SparkAccess,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.task_instance_id: int = payload.task_instance_id
        self.attempt: int = payload.attempt
        self.tag: str = payload.tag
        self.looks: int = payload.looks
        self.waiting_since: float | None = payload.waiting_since or None
        self.timeout_s: float | None = payload.timeout_s or None
        self.secrets: Mapping[str, str] = dict(payload.secrets)
        self.data_sources: Mapping[str, DataSource] = {
            name: from_message(name, source) for name, source in payload.data_sources.items()
        }
        self.settings: Mapping[str, str] = settings
        self.environment: str = prepared.named.label
        self.python: str = prepared.named.python
        self.work_dir: Path = prepared.work_dir
        self.parameters: Mapping[str, str] = dict(payload.parameters)
        self._variables, self._setup = prepared.environment, prepared.setup
        self._run, self._spark = run, spark
        self._ran = False

    async def run_process(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
    ) -> Exit:
        """Run the attempt's program to its end; see TaskContext. Raises ShoalError if it was
        called before or the program cannot be started."""
        if self._ran:
            raise ShoalError("a task type may run one process only: its end is the result")
        self._ran = True
        whole = argv if self._setup is None else self._setup.argv(argv)
        return await self._run(whole, {**self._variables, **(env or {})}, stdin)

    async def spark_connect(self) -> SparkConnect:
        """See TaskContext."""
        return await self._spark.connect()

    @property
    def spark(self) -> SparkConnect | None:
        """See TaskContext."""
        return self._spark.server
