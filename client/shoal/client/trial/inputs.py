"""What a task gets when it is tried: rendered as a master would, from what the caller provides."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shoal.core.data_sources.spec import DataSourceSpec, SourcePassword, StoredDataSource
from shoal.core.definition.environments import EnvironmentSpec
from shoal.core.definition.parameters import launch
from shoal.core.errors import ShoalError
from shoal.core.macros.placeholders import escape
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.scope import levels
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.core.task_types import TaskType
from shoal.master.dispatch.environments import wanted_environment
from shoal.master.dispatch.payloads import payload
from shoal.master.dispatch.resources import wanted_resources
from shoal.master.dispatch.secrets import ProjectSecrets
from shoal.master.dispatch.sources import SourceMaker, WantedSource, wanted_sources
from shoal.master.engine.publications import publications
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.plugins import load_task_type
from shoal.runtime.vault import Vault
from shoal.worker.logs.secret_forms import forms
from shoal.worker.supervisor.shim.masks import Masker

_VARIABLE = "SHOAL_SECRET_"  # before the name of a secret
_SOURCE = "SHOAL_DATA_SOURCE_"  # before the name of a data source


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
class MaskedInputs:
    """What the task would get. Secrets are masked."""

    task: str
    type: str
    parameters: Mapping[str, str]
    params: Mapping[str, Any]


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
        self, wanted: Sequence[WantedSource], environment: Mapping[str, str]
    ) -> dict[str, pb.DataSource]:
        """Return what the payload holds. Raises NoDataSourceGiven, and what a master would."""
        self._passwords: dict[tuple[str, str], str] = {}
        return self.make(wanted, {each.key: self._read(each, environment) for each in wanted})

    def password_of(self, source: StoredDataSource) -> str:
        return self._passwords[source.project, source.name]

    def _read(self, wanted: WantedSource, environment: Mapping[str, str]) -> StoredDataSource:
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
            raise NoDataSourceGiven(wanted.name, "that is not a JSON object") from None
        now = datetime.now(UTC)
        return StoredDataSource(*wanted.key, spec, SourcePassword(), 0, now, now)


@dataclass(frozen=True)
class Given:
    """What the caller provides in place of a cluster.

    ``parameters``: by name, also those of the project and of tasks upstream. ``variables``: the
    caller's environment, with secrets and data sources. ``resources``: a folder that holds the
    resources of the project by their paths. ``environment``: the one that the task names;
    ``no_environment``: run the task without it.
    """

    parameters: Mapping[str, str]
    variables: Mapping[str, str]
    resources: Path | None = None
    environment: EnvironmentSpec | None = None
    no_environment: bool = False


class TaskInputs:
    """Everything that one task of a definition gets, rendered."""

    def __init__(self, plan: WorkflowPlan, task: str, logical_time: datetime, given: Given) -> None:
        """Raises NotForTrial, InvalidMacro, NoSecretGiven, NoDataSourceGiven, NoResourceGiven,
        NoEnvironmentGiven."""
        kind = load_task_type(plan.tasks[task].type)
        if not issubclass(kind, TaskType):
            raise NotForTrial(
                f"{task} is of the type {plan.tasks[task].type}, which masters run: it starts, "
                "finds or chooses among other tasks; use `shoal run` on a cluster"
            )
        self.kind = kind
        self.variables = given.variables
        attempt = Attempt(task, 1, TaskState.CLAIMED, id=1)
        run = _run(plan, attempt, logical_time, given.parameters)
        secrets = _GivenSecrets(plan.spec.project, given.variables)
        own = levels(run, task)
        sources = _GivenSources(run, attempt, own, secrets.vault, {plan.spec.project: secrets})
        found = sources.found(wanted_sources(run, attempt, own), given.variables)
        self.payload = payload(run, attempt, 0, secrets, own, found)
        self.worker_group = plan.tasks[task].worker_group
        if (environment := _environment(run, attempt, given)) is not None:
            self.payload.environment.CopyFrom(environment)
        self.files = _files(run, attempt, given.resources)
        self.publications = publications(run, attempt, own)
        passwords = [source.password for source in self.payload.data_sources.values()]
        self.masked = [*self.payload.secrets.values(), *filter(None, passwords)]
        self.masker = Masker(forms(self.masked))

    @property
    def params(self) -> Any:
        """What the task type is called with."""
        return self.kind.Params.model_validate_json(self.payload.params_json)

    @property
    def rendered(self) -> MaskedInputs:
        """What the task gets."""
        made = self.payload
        return MaskedInputs(
            task=made.task,
            type=made.type,
            parameters={n: self.masker.mask(v) for n, v in sorted(made.parameters.items())},
            params=_masked(self.params.model_dump(mode="json", exclude_unset=True), self.masker),
        )


def _run(
    plan: WorkflowPlan, attempt: Attempt, logical_time: datetime, given: Mapping[str, str]
) -> Run:
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


def _environment(run: Run, attempt: Attempt, given: Given) -> pb.Environment | None:
    """Return what the payload holds. Raises NoEnvironmentGiven, NotForTrial."""
    name = wanted_environment(run, attempt)
    chosen = given.environment
    if name is None and chosen is not None:
        raise NotForTrial("the task runs in no environment: leave out --environment-file")
    if name is None or given.no_environment:
        return None
    if chosen is None:
        raise NoEnvironmentGiven(name)
    return pb.Environment(
        name=name, variables=chosen.variables, python=chosen.python, setup=chosen.setup
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


def _masked(value: Any, masker: Masker) -> Any:
    if isinstance(value, str):
        return masker.mask(value)
    if isinstance(value, Mapping):
        return {name: _masked(item, masker) for name, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, masker) for item in value]
    return value
