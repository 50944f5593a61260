"""The task type CONTAINER and its fields. The API imports it, so it imports little."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from shoal.core.definition.fields import Duration
from shoal.core.macros.placeholders import SECRETS_PREFIX, is_open
from shoal.core.task_types import CommandLine, TaskParams, Verbatim
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.program import Argument, Arguments

INSIDE = "/shoal"  # what Shoal puts into a container is below this folder
_IMAGE = re.compile(
    r"[a-z0-9][A-Za-z0-9._:/-]{0,400}(@sha256:[0-9a-f]{64})?"  # NAME[:TAG][@DIGEST], with a host
)
_SIZE = re.compile(r"([0-9]{1,9})([kmgKMG])[bB]?")
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
LEAST_MEMORY = 6 << 20  # bytes: docker refuses less
_USER = re.compile(r"[0-9]{1,10}(:[0-9]{1,10})?")
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")  # a name in Kubernetes
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_MOST_SECRETS = 512 * 1024  # bytes of all files; an object of Kubernetes has 1 MiB
#: Fields that one of the two kinds of engine has no counterpart for.
_OF_ENGINES = ("network", "mounts", "pids", "init", "idempotent")
_OF_KUBERNETES = ("namespace", "service_account", "start_timeout")


def _fits(pattern: re.Pattern[str], what: str) -> AfterValidator:
    def check(text: str) -> str:
        if text and not is_open(text) and not pattern.fullmatch(text):
            raise ValueError(f"{text!r} is not a valid {what}")
        return text

    return AfterValidator(check)


def _memory(text: str) -> str:
    if text and not is_open(text) and size(text) < LEAST_MEMORY:
        raise ValueError(f"{text}: no container starts with less than 6m")
    return text


def _absolute(path: str) -> str:
    if is_open(path):
        return path
    parts = path.split("/")
    if not path.startswith("/") or ".." in parts or re.search(r"[\x00-\x1f\x7f,:]", path):
        raise ValueError(f"{path!r}: expected an absolute path without '..', ':' and ','")
    return path


def _target(path: str) -> str:
    if path.rstrip("/") == "" or f"{path.rstrip('/')}/".startswith(f"{INSIDE}/"):
        raise ValueError(f"{path!r}: nothing can be mounted over / or {INSIDE}")
    return _absolute(path)


def size(text: str) -> int:
    """Return the bytes of a size such as 512m. Raises ValueError."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a size: expected one such as 512m or 2g")
    return int(found[1]) * _UNITS[found[2].lower()]


class Mount(BaseModel):
    """A folder of the worker's machine that the container sees."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Annotated[str, AfterValidator(_absolute)]
    target: Annotated[str, AfterValidator(_target)]
    read_only: bool = True


class Registry(BaseModel):
    """How the engine signs in where the image comes from."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    user: str = Field(min_length=1)
    password: str = Field(min_length=1, repr=False)


class ContainerParams(TaskParams):
    """What a CONTAINER task runs, and where.

    Parameters are environment variables of the container, as in a SHELL task, and all of them are
    in the JSON file that ``SHOAL_PARAMETERS`` names; ``${name}`` in ``command`` is never replaced.
    Secrets are files in ``/shoal/secrets``: all users who may ask the engine see variables.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    engine: Literal["docker", "podman", "kubernetes"] = Field(
        description="Where it runs; the worker's administrator says which of them there are."
    )
    image: Annotated[str, _fits(_IMAGE, "image such as registry.example.org/etl/load:1.4")] = Field(
        min_length=1, description="The image, with its tag or digest."
    )
    command: Annotated[tuple[Argument, ...], Verbatim()] = Field(
        default=(),
        description="Instead of the image's entry point. Nothing is replaced in it but dates: a "
        "shell in it expands ${name} itself.",
    )
    arguments: Arguments = ()
    environment: Annotated[dict[str, Argument], CommandLine()] = Field(
        default_factory=dict, description="Further variables."
    )
    secrets: dict[Annotated[str, Field(pattern=rf"^{_SLUG.pattern}$")], str] = Field(
        default_factory=dict,
        description="Texts by the names of their files in /shoal/secrets: NAME: ${secret.NAME}.",
        repr=False,
    )
    working_dir: Annotated[str, AfterValidator(_absolute)] | None = None
    user: Annotated[str, _fits(_USER, "number of a user such as 1000 or 1000:1000")] = Field(
        default="", description="UID or UID:GID; empty: the image's."
    )
    cpus: Annotated[float, Field(gt=0, le=1024)] | None = Field(
        default=None, description="Processors, such as 0.5."
    )
    memory: Annotated[str, _fits(_SIZE, "size such as 512m or 2g"), AfterValidator(_memory)] = (
        Field(default="", description="Limit, such as 512m; beyond it the container is killed.")
    )
    pids: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=1000, description="Processes and threads at once."
    )
    network: Annotated[str, _fits(_SLUG, "name of a network")] = Field(
        default="", description="One that the worker allows; empty: the first of those."
    )
    mounts: tuple[Mount, ...] = Field(
        default=(), description="Folders of the worker that its administrator allows."
    )
    init: bool = Field(
        default=False, description="The engine's own first process, which passes signals on."
    )
    pull: Literal["missing", "always", "never"] = "missing"
    registry: Registry | None = Field(default=None, description="user and password.")
    namespace: Annotated[str, _fits(_LABEL, "namespace")] = Field(
        default="", description="Of Kubernetes; empty: the first that the worker allows."
    )
    service_account: Annotated[str, _fits(_LABEL, "service account")] = ""
    start_timeout: Annotated[Duration, Field(gt=0)] = Field(
        default=300.0, description="How long a pod may wait for its node and its image."
    )
    idempotent: bool = Field(
        default=False,
        description="Whether it may run again when its worker is lost: the container may go on.",
    )

    @field_validator("command")
    @classmethod
    def _reads_files(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        for text in command:
            if found := re.search(r"\bSHOAL_SECRET_(\w+)", text):
                raise ValueError(
                    f"a container has no variable {found[0]}: give it secrets: {{{found[1]}: "
                    f"'${{secret.{found[1]}}}'}} and read the file {INSIDE}/secrets/{found[1]}"
                )
        return command

    @field_validator("command", "arguments", "environment")
    @classmethod
    def _without_secrets(cls, value: Any) -> Any:
        for text in value.values() if isinstance(value, dict) else value:
            if f"${{{SECRETS_PREFIX}" in text:
                raise ValueError(
                    "holds a secret, which every user of the engine could see; give it in "
                    f"the field secrets, and read the file in {INSIDE}/secrets"
                )
        return value

    @field_validator("environment")
    @classmethod
    def _variables(cls, environment: dict[str, str]) -> dict[str, str]:
        for name in environment:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{name!r} is not a name of a variable")
            if name.startswith("SHOAL_"):
                raise ValueError(f"{name} is Shoal's own")
        return environment

    @field_validator("secrets")
    @classmethod
    def _fit_into_files(cls, secrets: dict[str, str]) -> dict[str, str]:
        if (total := sum(len(text.encode()) for text in secrets.values())) > _MOST_SECRETS:
            raise ValueError(f"make {total:,} bytes, at most {_MOST_SECRETS:,} fit")
        return secrets

    @model_validator(mode="after")
    def _fits_the_engine(self) -> Self:
        is_kubernetes = self.engine == "kubernetes"
        for name in _OF_ENGINES if is_kubernetes else _OF_KUBERNETES:
            if getattr(self, name) != type(self).model_fields[name].default:
                where = "docker and podman" if is_kubernetes else "kubernetes"
                raise ValueError(f"{name} is for {where}, and the engine is {self.engine}")
        return self


class Container(ChildType[ContainerParams]):
    """Runs one container to its end. Killed means that it is gone, wherever it was."""

    Params = ContainerParams
    work = "shoal.worker.types.container.run:run"
    settles = True

    @classmethod
    def repeats_after_loss(cls, params: Mapping[str, Any]) -> bool:
        """See TaskKind: at an engine that other workers do not reach it may go on."""
        given = ContainerParams.model_validate(params)
        return given.idempotent or given.engine == "kubernetes"
