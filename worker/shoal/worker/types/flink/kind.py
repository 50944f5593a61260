"""The task type FLINK, its fields, and the kind of its clusters. The API imports it."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from shoal.core.data_sources.kind import TLS_OR_NOT, FieldNeed, ServerOptions, SourceKind
from shoal.core.task_types import CommandLine, SourceName, TaskParams
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.program import Argument, Arguments

KINDS = frozenset({"flink"})
# Settings that a field of its own covers: one way to say a thing.
FIELDS = {
    "parallelism.default": "parallelism",
    "execution.savepoint.path": "savepoint",
    "execution.state-recovery.path": "savepoint",
    "execution.savepoint.ignore-unclaimed-state": "allow_non_restored_state",
    "execution.state-recovery.ignore-unclaimed-state": "allow_non_restored_state",
}
# What a task may set: how its job runs, never where it goes, by which id, or with which files.
ALLOWED = re.compile(
    r"""execution\.(runtime-mode|buffer-timeout(\..*)?|batch-shuffle-mode|sorting-.*)
    |execution\.batch\..*
    |execution\.(checkpointing|savepoint|state-recovery)\..*
    |restart-strategy(\..*)?
    |state\..*
    |table\..*
    |pipeline\.(name|max-parallelism|object-reuse|auto-.*|operator-chaining.*|watermark-.*)
    |pipeline\.(global-job-parameters|generic-types)
    |pipeline\.(force-.*|closure-cleaner-level|time-characteristic|vertex-.*)
    |parallelism\..*|slot\..*|taskmanager\.network\.memory\.buffer-debloat\..*
    |jobmanager\.adaptive-batch-scheduler\..*|jobmanager\.partition\..*
    """,
    re.VERBOSE,
)
_KEY = re.compile(r"[a-z][A-Za-z0-9_.\-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLACEHOLDER = r"|.*\$[{\[].*"  # rendered by the master; judged again with its value


def _one_line(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("must not contain line ends or other control characters")
    return text


def _path(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty: expected the path of a jar on the worker")
    return text


def _location(text: str) -> str:
    if text and "$" not in text and not re.match(r"/|[a-z][a-z0-9+.\-]*:/", text):
        raise ValueError(
            f"{text!r}: expected a path or URL that the cluster can reach, such as "
            "s3://bucket/savepoints"
        )
    return text


Line = Annotated[Argument, AfterValidator(_one_line), CommandLine()]
Location = Annotated[Line, AfterValidator(_location)]


class FlinkParams(TaskParams):
    """What a FLINK task submits.

    Flink shows arguments and settings of a job to all users who see its pages, so secrets are
    refused in them. ``conf`` may set how the job runs: ``execution.checkpointing.*``,
    ``execution.runtime-mode``, ``restart-strategy.*``, ``state.*``, ``table.*``, ``pipeline.name``
    and the like; not where it goes, by which id, or which files are loaded.
    """

    data_source: Annotated[str, SourceName(kinds=KINDS)] = Field(
        min_length=1, description="Name of a data source of the kind flink."
    )
    jar: Annotated[Line, AfterValidator(_path)] = Field(
        description="The jar with all that the job needs, a path on the worker."
    )
    main_class: Annotated[Line, StringConstraints(pattern=rf"^(?:[\w.$]*{_PLACEHOLDER})$")] = Field(
        default="", description="The class to start. Empty: the manifest's."
    )
    arguments: Arguments = ()
    parallelism: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="None: what the cluster or the program says."
    )
    savepoint: Location = Field(default="", description="A savepoint or checkpoint to start from.")
    allow_non_restored_state: bool = Field(
        default=False, description="Start although state of the savepoint belongs to no operator."
    )
    wait: Literal["finished", "running"] = Field(
        default="finished",
        description="When the task has succeeded: when the job has finished, or when it runs.",
    )
    cancel: Literal["cancel", "stop_with_savepoint"] = Field(
        default="cancel", description="How a job ends whose task is killed or runs out of time."
    )
    savepoint_folder: Location = Field(
        default="", description="Where stop_with_savepoint puts it. Empty: the cluster's folder."
    )
    resume: bool = Field(
        default=False,
        description="Another attempt starts from the savepoint with which an earlier one stopped.",
    )
    conf: Annotated[dict[str, Line], CommandLine()] = Field(
        default_factory=dict, description="Further settings of the job."
    )

    @field_validator("conf")
    @classmethod
    def _of_the_job_alone(cls, conf: dict[str, str]) -> dict[str, str]:
        for key in conf:
            if not _KEY.fullmatch(key):
                raise ValueError(f"{key!r} is not a Flink setting")
            if key in FIELDS:
                raise ValueError(f"{key}: use the field {FIELDS[key]!r}")
            if not ALLOWED.fullmatch(key):
                raise ValueError(
                    f"{key} cannot be set by a task: only how a job runs, such as "
                    "execution.checkpointing.interval, restart-strategy.type, state.backend.type"
                )
        return conf

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.savepoint_folder and self.cancel != "stop_with_savepoint":
            raise ValueError("savepoint_folder is for cancel: stop_with_savepoint")
        if self.resume and self.cancel != "stop_with_savepoint":
            raise ValueError("resume is for cancel: stop_with_savepoint, whose savepoint it takes")
        if self.allow_non_restored_state and not (self.savepoint or self.resume):
            raise ValueError("allow_non_restored_state is for a savepoint, or resume")
        return self


class Flink(ChildType[FlinkParams]):
    """Runs a job in a Flink cluster; killed means that Flink has confirmed its end."""

    Params = FlinkParams
    work = "shoal.worker.types.flink.run:run"
    settles = True


class FlinkOptions(ServerOptions):
    """Options of a Flink session cluster, by its REST API."""

    tls_option = "tls"

    tls: Literal["disable", "verify-full"] = Field(
        default="disable",
        description=f"{TLS_OR_NOT} A password or token is sent with TLS only.",
    )
    path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9_~.\-]{1,100}){1,10}$")] | None = Field(
        default=None, description="Path of the REST API behind a proxy, such as /flink. Default: /."
    )


class FlinkCluster(SourceKind):
    """A Flink session cluster."""

    title = "Flink"
    Options = FlinkOptions
    probe = "shoal.worker.types.flink.cluster:probe"
    port = 8081
    database = FieldNeed.NONE
    user = FieldNeed.OPTIONAL
    credential = "password, or token without a user"
    password_needs = ("tls", "verify-full")
