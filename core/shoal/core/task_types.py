"""What a task type is; ``shoal.runtime.plugins`` finds the installed ones.

A task type is a class with a pydantic ``Params`` model and ``async run``; those that the master
runs itself have no ``run``. It registers under the entry-point group ``shoal.task_types``, the
built-in ones too. Its module must be cheap to import: the API and the command line load it to
check ``params``; heavy libraries belong inside ``run``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Protocol, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from shoal.core.data_sources import DataSource
from shoal.core.data_sources.references import SourceName as SourceName  # one of the marks
from shoal.core.errors import ShoalError


@dataclass(frozen=True)
class Verbatim:
    """Marks a text field of ``Params`` that is a program in another language.

    Parameters are never pasted into it (their values could become code); programs read them
    from the environment. Date expressions and ``${system.…}`` are still rendered.
    """

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Tell forms to edit it as a program."""
        return {**handler(schema), "x-editor": "script"}


Script = Annotated[str, Verbatim()]


@dataclass(frozen=True)
class CommandLine:
    """Marks a field of ``Params`` that becomes part of a command line.

    Every user of a machine can read command lines, so secrets are refused there.
    """


@dataclass(frozen=True)
class ResourceName:
    """Marks a text field of ``Params`` that names a resource of the project; empty: none.

    The resource is copied into the attempt's folder: see ``core.definition.resources``.
    """

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Tell forms to offer the resources of the project."""
        return {**handler(schema), "x-ref": "resource"}


class TaskParams(BaseModel):
    """Base of every ``Params`` model: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@cache
def fields_marked(params: type[TaskParams], mark: type) -> frozenset[str]:
    """Return the fields of ``params`` that carry a mark, on themselves or inside their type."""
    return frozenset(
        name
        for name, field in params.model_fields.items()
        if any(isinstance(one, mark) for one in (*field.metadata, *_marks_in(field.annotation)))
    )


def _marks_in(annotation: Any) -> Iterator[Any]:
    yield from getattr(annotation, "__metadata__", ())
    for part in get_args(annotation):
        yield from _marks_in(part)


#: A file in an attempt's folder that says how far its work is: a JSON object with the numbers
#: ``done``, ``total`` (null: not known) and ``at`` (seconds since the Unix epoch), and the texts
#: ``unit`` and ``label``. It is replaced in one step. Any program of an attempt may write it.
PROGRESS_FILE = "progress.json"


@dataclass(frozen=True)
class Exit:
    """How a process ended. ``signal`` is set when one killed it; then ``code`` is None."""

    code: int | None
    signal: int | None = None


@dataclass(frozen=True)
class Settling:
    """A program that ends what an attempt has left running elsewhere: exit code 0 says it is done.

    It runs like the attempt's own, with the same environment, for 20 s at most.
    """

    argv: Sequence[str]
    stdin: str | None = None


@dataclass(frozen=True)
class SparkConnect:
    """A Spark Connect server that the worker keeps for a project, on its loopback.

    Who signs in has to show the token, and to say ``localhost``: to any other name Spark's client
    sends no token without TLS.
    """

    port: int
    token: str = field(repr=False)


class TaskContext(Protocol):
    """What one attempt may use. Paths are on the worker.

    ``tag`` is the same for all attempts of a task in one run, and no other task's in any cluster:
    work that is done elsewhere carries it, so that a later attempt finds what is left of an
    earlier one. It is made of at most 40 lower-case letters, digits and dashes.
    """

    task_instance_id: int
    attempt: int  # counts from 1
    tag: str
    looks: int  # earlier ones that did not find what the task waits for
    waiting_since: float | None  # seconds since the Unix epoch; None: this is the first look
    work_dir: Path  # private to the attempt, the process's current directory
    parameters: Mapping[str, str]
    secrets: Mapping[str, str]  # those that the task uses, by name
    data_sources: Mapping[str, DataSource]  # those that the params name, by name
    timeout_s: float | None  # after which the worker ends the attempt
    settings: Mapping[str, str]  # of the worker, what its administrator says to task types
    environment: str  # that it runs in, as NAME@VERSION; empty: none
    python: str  # the interpreter of its environment, a path; empty: it has none

    async def run_process(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
    ) -> Exit:
        """Run one program of the attempt to its end, output into the attempt's log.

        ``env`` is added to the attempt's environment. ``stdin`` is what it reads from its standard
        input: a text that never touches a disk. Every descendant is dead on return.
        Call it once: its end is the attempt's durable result.
        """
        ...

    async def spark_connect(self) -> SparkConnect:
        """Return the Spark Connect server of the task's project, which is started if need be.

        It stays until the attempt is over, or dies. Raises ShoalError.
        """
        ...

    @property
    def spark(self) -> SparkConnect | None:
        """The server that ``spark_connect`` has returned, while it lives."""
        ...


P = TypeVar("P", bound=TaskParams)


class TaskKind(Generic[P]):
    """What all kinds of tasks have.

    A failure with one of ``permanent_exit_codes`` would be the same another time: no retry follows.
    ``not_yet_exit_code`` is none: what the task waits for is not there, and another attempt looks
    later (``docs/semantics.md``, looks). None: tasks of this kind do not look.
    ``uses_environment``: it starts a program of others, so the environment that the workflow names
    applies (``core.definition.environments``).
    """

    Params: ClassVar[type[TaskParams]]
    permanent_exit_codes: ClassVar[frozenset[int]] = frozenset()
    not_yet_exit_code: ClassVar[int | None] = None
    uses_environment: ClassVar[bool] = False

    @classmethod
    def repeats_after_loss(cls, params: Mapping[str, Any]) -> bool:
        """Say whether a new attempt may follow by itself when the worker of one is lost.

        False for work that may have taken effect and must not do so twice: a person decides then.
        ``params`` are as they are written in a checked definition, so they may hold placeholders.
        """
        return True


class LogicType(TaskKind[P]):
    """A kind of task that the master runs; what it does is part of ``decide``."""


class TaskType(TaskKind[P], ABC):
    """One kind of task. Stateless; one object serves one attempt."""

    uses_environment = True

    @abstractmethod
    async def run(self, context: TaskContext, params: P) -> Exit:
        """Do the work of one attempt. An exception fails the attempt with its text."""

    def failure(self, work_dir: Path) -> str | None:
        """Return why the process failed, if more is known than its exit code. May block."""
        return None

    def again_s(self, work_dir: Path) -> float | None:
        """Return the seconds to the next look, after an exit with ``not_yet_exit_code``.

        None: a minute. May block.
        """
        return None

    def not_repeatable(self, work_dir: Path) -> str | None:
        """Return why no attempt may follow by itself; None: one may. May block.

        Called when something else than the process itself has ended it: a signal, its timeout.
        """
        return None

    def settling(
        self,
        context: TaskContext,
        params: P,
    ) -> Settling | None:
        """Return what ends the work that a process has left elsewhere; None: there is none.

        Called when the process has failed or was killed, perhaps before it had begun. The attempt
        is over when it has succeeded. May block.
        """
        return None


class UnknownTaskType(ShoalError, ValueError):
    """No installed plugin has this name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        super().__init__(f"unknown task type {name!r}; installed: {', '.join(known)}")


# Returns the task type of a name. Raises UnknownTaskType, UnusablePlugin.
FindTaskType = Callable[[str], type[TaskKind[Any]]]
