"""One task, run here and now: rendered as a master would, worked on as a worker would.

There is no cluster: no claim, no lease, no record. What a task gets, and in which environment it
runs, is made by the same code as on a worker.
"""

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from shoal.core.data_sources.spec import DataSourceSpec
from shoal.core.data_sources.stored import StoredDataSource, StoredPassword
from shoal.core.definition.environments import EnvironmentSpec
from shoal.core.definition.parameters import RESERVED_PATTERN, launch
from shoal.core.definition.resources import RESOURCES
from shoal.core.errors import ShoalError
from shoal.core.macros.placeholders import escape
from shoal.core.runs.run import Attempt, Plan, Run
from shoal.core.runs.scope import levels
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.core.task_types import Exit, SparkConnect, TaskType
from shoal.core.timing import poll_interval
from shoal.master.dispatch.environments import wanted_environment
from shoal.master.dispatch.payloads import ProjectSecrets, payload
from shoal.master.dispatch.publications import publications
from shoal.master.dispatch.resources import wanted_resources
from shoal.master.dispatch.sources import SourceMaker, Wanted, wanted_sources
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.plugins import load_task_type
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import Limits
from shoal.runtime.vault import Vault
from shoal.worker.execution.context import AttemptContext, Prepared, prepare
from shoal.worker.execution.environment.setup import NOT_REACHED
from shoal.worker.home.storing import Leaving, opened
from shoal.worker.logs.secret_forms import forms
from shoal.worker.supervisor.shim.masking import Masker
from shoal.worker.supervisor.shim.outputs import BadOutput, collect

KILL_GRACE_S = 10.0
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
_VARIABLE = "SHOAL_SECRET_"  # before the name of a secret
_SOURCE = "SHOAL_DATA_SOURCE_"  # before the name of a data source
_CHUNK = 1 << 16  # bytes of output passed on at once


class NoSecretGiven(ShoalError):
    """The task uses a secret that the caller has not given."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the task uses the secret {name}; a trial takes it from the environment: set "
            f"{_VARIABLE}{name}"
        )


class NoDataSourceGiven(ShoalError):
    """The task uses a data source that the caller has not given, or not as it must be."""

    def __init__(self, name: str, problem: str = "") -> None:
        super().__init__(
            f"the task uses the data source {name}; a trial takes it from the environment: set "
            f"{_SOURCE}{name.rpartition('/')[2]} to JSON such as "
            '{"kind": "sqlite", "database": "/tmp/x.db"}' + (f": {problem}" if problem else "")
        )


class NoResourceGiven(ShoalError):
    """The task uses a resource that the caller has not given."""

    def __init__(self, reference: str, folder: Path | None = None) -> None:
        where = f", and {folder} has none" if folder is not None else ""
        super().__init__(
            f"the task uses the resource {reference}{where}; a trial takes it from a folder with "
            "the files of the project: name it with --resources DIR"
        )


class NoEnvironmentGiven(ShoalError):
    """The task runs in an environment that the caller has not given."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the task runs in the environment {name}, which is the cluster's; a trial takes it "
            f"from a file: `shoal environment show {name} --json >{name}.json`, then "
            f"--environment-file {name}.json; or --no-environment"
        )


class NotForTrial(ShoalError):
    """The task cannot be tried."""


@dataclass(frozen=True)
class Rendered:
    """What the task would get. Secrets are masked."""

    task: str
    type: str
    parameters: Mapping[str, str]
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Tried:
    """How the task ended. ``reason`` is empty if it succeeded.

    ``again_s``: it was a look that did not find what the task waits for; the next one would be in
    so many seconds.
    """

    exit_code: int
    reason: str = ""
    again_s: float | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    files: Sequence["LeftFile"] = ()  # what would become resources


@dataclass(frozen=True)
class LeftFile:
    """A file that the task has left, and the resource that it would become. ``size``: bytes."""

    file: str
    path: str
    size: int


class _GivenSecrets(ProjectSecrets):
    """Secrets from the caller's environment."""

    def __init__(self, project: str, environment: Mapping[str, str]) -> None:
        self.vault = Vault(Path(os.devnull))
        super().__init__(self.vault, project, {})
        self._environment = environment

    def __call__(self, name: str) -> str:
        try:
            self.used[name] = self._environment[_VARIABLE + name]
        except KeyError:
            raise NoSecretGiven(name) from None
        return self.used[name]


class _GivenSources(SourceMaker):
    """Data sources from the caller's environment, with their passwords in the clear."""

    def found(
        self, wanted: Sequence[Wanted], environment: Mapping[str, str]
    ) -> dict[str, pb.DataSource]:
        """Return what the payload holds. Raises NoDataSourceGiven, and what a master would."""
        self._passwords: dict[tuple[str, str], str] = {}
        return self.make(wanted, {each.key: self._read(each, environment) for each in wanted})

    def password_of(self, source: StoredDataSource) -> str:
        return self._passwords[source.project, source.name]

    def _read(self, wanted: Wanted, environment: Mapping[str, str]) -> StoredDataSource:
        try:
            fields = json.loads(environment[_SOURCE + wanted.plain])
            self._passwords[wanted.key] = str(fields.pop("password", ""))
            spec = DataSourceSpec.model_validate(fields)
        except KeyError:
            raise NoDataSourceGiven(wanted.name) from None
        except ValidationError as error:
            told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
            raise NoDataSourceGiven(wanted.name, "; ".join(told)) from None
        except (ValueError, AttributeError, TypeError):
            raise NoDataSourceGiven(wanted.name, "that is no JSON object") from None
        now = datetime.now(UTC)
        return StoredDataSource(*wanted.key, spec, StoredPassword(), 0, now, now)


class Trial:
    """One task of a definition, with everything rendered."""

    def __init__(
        self,
        plan: Plan,
        task: str,
        logical_time: datetime,
        given: Mapping[str, str],
        environment: Mapping[str, str],
        resources: Path | None = None,
        around: EnvironmentSpec | None = None,
        *,
        no_environment: bool = False,
    ) -> None:
        """``given`` are parameters by name, also those of the project and of tasks upstream.

        ``resources``: a folder that holds the resources of the project by their paths.
        ``around``: the environment that the task names; ``no_environment``: do without.
        Raises NotForTrial, InvalidMacro, NoSecretGiven, NoDataSourceGiven, NoResourceGiven,
        NoEnvironmentGiven.
        """
        kind = load_task_type(plan.tasks[task].type)
        if not issubclass(kind, TaskType):
            raise NotForTrial(
                f"{task} is of the type {plan.tasks[task].type}, which masters run: it starts, "
                "finds or chooses among other tasks; use `shoal run` on a cluster"
            )
        self._kind = kind
        self._environment = environment
        attempt = Attempt(task, 1, TaskState.CLAIMED, id=1)
        run = _run(plan, attempt, logical_time, given)
        self._payload = _payload(run, attempt, environment)
        self._group = plan.tasks[task].worker_group
        if (found := _environment(run, attempt, around, no_environment)) is not None:
            self._payload.environment.CopyFrom(found)
        self._files = _files(run, attempt, resources)
        self._publish = publications(run, attempt, levels(run, task))
        passwords = [source.password for source in self._payload.data_sources.values()]
        self._masked = [*self._payload.secrets.values(), *filter(None, passwords)]
        self._masker = Masker(forms(self._masked))

    @property
    def rendered(self) -> Rendered:
        """What the task gets."""
        made = self._payload
        params = self._kind.Params.model_validate_json(made.params_json)
        return Rendered(
            task=made.task,
            type=made.type,
            parameters={n: self._masker.mask(v) for n, v in sorted(made.parameters.items())},
            params=_masked(params.model_dump(mode="json", exclude_unset=True), self._masker),
        )

    async def run(
        self, on_output: Callable[[bytes], None], settings: Mapping[str, str] = NO_SETTINGS
    ) -> Tried:
        """Run the task in a folder of its own, which is removed afterwards.

        ``on_output`` gets what it writes, secrets masked. ``settings`` are those of a worker for
        task types. Cancelling ends the task's processes.
        """
        with tempfile.TemporaryDirectory(prefix="shoal-test-") as folder:
            place = Path(folder) / "task"
            try:
                prepared = prepare(self._payload, place, self._environment, (), self._group)
            except ShoalError as error:
                return Tried(1, str(error))
            for path, source in self._files.items():
                target = prepared.work_dir / RESOURCES / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                target.chmod(0o500)

            async def run(argv: Sequence[str], env: Mapping[str, str], stdin: str | None) -> Exit:
                emit = self._masking(on_output)
                return await _run_process(argv, env, stdin, prepared.work_dir, emit)

            task_type = self._kind()
            params = self._kind.Params.model_validate_json(self._payload.params_json)
            timeout_s = self._payload.timeout_s or None
            try:
                async with asyncio.timeout(timeout_s):
                    context = AttemptContext(self._payload, prepared, run, _NoSpark(), settings)
                    ended = await task_type.run(context, params)
            except TimeoutError:
                return Tried(1, f"timed out after {timeout_s:g} s")
            except ShoalError as error:
                return Tried(1, str(error))
            return self._tried(ended, task_type, prepared)

    def _tried(self, ended: Exit, task_type: TaskType[Any], prepared: Prepared) -> Tried:
        if ended.signal is not None:
            return Tried(128 + ended.signal, f"ended by signal {ended.signal}")
        setup = prepared.setup.failure() if prepared.setup is not None else None
        if setup and not ended.code:
            return Tried(1, f"{setup}: {NOT_REACHED}")
        if ended.code:
            reason = setup or task_type.failure(prepared.work_dir) or f"exit code {ended.code}"
            is_look = ended.code == task_type.not_yet_exit_code
            again_s = (
                poll_interval.bounded(task_type.again_s(prepared.work_dir) or 0.0)
                if is_look
                else None
            )
            return Tried(ended.code, self._masker.mask(reason), again_s)
        try:
            found = collect(str(prepared.output_file), None, RESERVED_PATTERN)
        except (BadOutput, OSError) as error:
            return Tried(1, f"its outputs cannot be used: {error}")
        try:
            left = tuple(_left(prepared.work_dir, file, path) for file, path in self._publish)
        except ShoalError as error:
            return Tried(1, str(error))
        masked = {name: self._masker.mask(text) for name, text in found.items()}
        return Tried(0, outputs=masked, files=left)

    def _masking(self, on_output: Callable[[bytes], None]) -> Callable[[bytes], None]:
        if not self._masked:
            return on_output
        return lambda part: on_output(self._masker.mask(part.decode("utf-8", "replace")).encode())


class _NoSpark:
    """See SparkAccess: servers are kept by workers."""

    server: SparkConnect | None = None

    async def connect(self) -> SparkConnect:
        raise NotForTrial(
            "the task asks for the Spark Connect server that a worker keeps, and `shoal test` has "
            "none: give the data source the host of a server, or use `shoal run` on a cluster"
        )


def _run(plan: Plan, attempt: Attempt, logical_time: datetime, given: Mapping[str, str]) -> Run:
    declared = {name: text for name, text in given.items() if name in plan.spec.parameters}
    others = {name: escape(text) for name, text in given.items() if name not in declared}
    try:
        launched = launch(plan.spec.parameters, others, declared)
    except ValueError as error:
        raise NotForTrial(f"the parameters do not fit: {error}") from error
    return Run(
        id=1,
        plan=plan,
        state=WorkflowState.RUNNING,
        partition=0,
        attempts={attempt.task: attempt},
        created_at=datetime.now(UTC),
        logical_time=logical_time,
        parameters=launched.parameters,
        timezone=plan.spec.timezone,
        started_at=datetime.now(UTC),
        startup=launched.startup,
    )


def _payload(run: Run, attempt: Attempt, environment: Mapping[str, str]) -> pb.Payload:
    plan = run.plan
    secrets = _GivenSecrets(plan.spec.project, environment)
    own = levels(run, attempt.task)
    sources = _GivenSources(run, attempt, own, secrets.vault, {plan.spec.project: secrets})
    found = sources.found(wanted_sources(run, attempt, own), environment)
    return payload(run, attempt, 0, secrets, own, found)


def _environment(
    run: Run, attempt: Attempt, given: EnvironmentSpec | None, none: bool
) -> pb.Environment | None:
    """Return what the payload holds. Raises NoEnvironmentGiven, NotForTrial."""
    name = wanted_environment(run, attempt)
    if name is None and given is not None:
        raise NotForTrial("the task runs in no environment: leave out --environment-file")
    if name is None or none:
        return None
    if given is None:
        raise NoEnvironmentGiven(name)
    return pb.Environment(
        name=name, variables=given.variables, python=given.python, setup=given.setup
    )


def _files(run: Run, attempt: Attempt, folder: Path | None) -> dict[str, Path]:
    """Return the local files that the task names, by their paths. Raises NoResourceGiven."""
    found: dict[str, Path] = {}
    for wanted in wanted_resources(run, attempt, levels(run, attempt.task)):
        reference = wanted.reference
        if folder is None:
            raise NoResourceGiven(str(reference))
        place = folder / reference.path
        files = [place]
        if reference.is_folder:
            files = sorted(one for one in place.rglob("*") if one.is_file())
        if not files or not all(one.is_file() for one in files):
            raise NoResourceGiven(str(reference), folder)
        found |= {one.relative_to(folder).as_posix(): one for one in files}
    return found


def _left(folder: Path, file: str, path: str) -> LeftFile:
    """Return what a worker would hand over. Raises NotUsable."""
    with opened(folder, Leaving(file, path, ""), Limits.of(ClusterSettings()).file) as found:
        return LeftFile(file, path, os.fstat(found.fileno()).st_size)


def _masked(value: Any, masker: Masker) -> Any:
    if isinstance(value, str):
        return masker.mask(value)
    if isinstance(value, Mapping):
        return {name: _masked(item, masker) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, masker) for item in value]
    return value


async def _run_process(
    argv: Sequence[str],
    env: Mapping[str, str],
    stdin: str | None,
    folder: Path,
    on_output: Callable[[bytes], None],
) -> Exit:
    """Run a program. Cancelled, it ends what runs in the program's session."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=dict(env),
            cwd=folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise NotForTrial(f"cannot run {argv[0]!r}: {error.strerror}") from error
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write((stdin or "").encode())
            await process.stdin.drain()
        process.stdin.close()
        while part := await process.stdout.read(_CHUNK):
            on_output(part)
        code = await process.wait()
    except BaseException:
        await _end(process)
        raise
    finally:
        _signal(process, signal.SIGKILL)  # what it has left behind in its session
    return Exit(None, -code) if code < 0 else Exit(code)


async def _end(process: asyncio.subprocess.Process) -> None:
    _signal(process, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(KILL_GRACE_S):
            await process.wait()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
