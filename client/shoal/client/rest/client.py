"""The API as Python calls: every operation as it is, and what one operation is not enough for.

Synchronous; one client belongs to one thread at a time.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    cast,
)

from shoal.client.discovery import REFUSED, Api, find_api
from shoal.client.errors import (
    ApiProblem,
    ApiUnreachable,
    CommandRefused,
    LogBroken,
    NotEnded,
    NotFound,
    NotHandled,
)
from shoal.client.rest.connection import ApiConnection
from shoal.client.rest.operations.exchange import (
    RETRY_PAUSES_S,
    START_PAUSES_S,
    TIMEOUT_S,
    ApiAddress,
)
from shoal.client.rest.operations.generated.operations import Operations
from shoal.client.rest.sse import PAUSES_S, Reconnecting
from shoal.core.runs.states import FINISHED_WORKFLOW

if TYPE_CHECKING:
    from datetime import datetime

    from shoal.client.rest.operations.generated.types import (
        CommandOut,
        InstanceDetail,
        PublishOut,
        ResourceOut,
        SelectionMode,
        StartCommand,
        WorkflowSpec,
    )
    from shoal.client.sdk.workflow import Workflow
    from shoal.core.definition import model

PAGE = 200
LONG_POLL_S = 20.0  # the API allows 30
# Pauses between requests for the state of a run: doubled from the first to the last.
FIRST_LOOK_S, LAST_LOOK_S = 0.1, 2.0
_PIECE = 1 << 20  # bytes

P = ParamSpec("P")
T = TypeVar("T")


class Page(TypedDict, Generic[T]):
    """Some items of a list, and usually the cursor of the next ones in ``next``."""

    items: list[T]


class Event(TypedDict):
    """The data of an event of a stream, which OpenAPI cannot describe."""

    id: int
    at: str  # RFC 3339, UTC
    kind: str
    project: str
    instance_id: int | None
    task_instance_id: int | None
    data: dict[str, Any]


@dataclass(frozen=True)
class LogChunk:
    """Some text of a log. ``offset`` is its first byte; ``end`` marks the end of the log."""

    data: str
    offset: int
    end: bool = False


class ShoalClient(Operations):
    """A connection to the API at ``url``, such as http://127.0.0.1:8765.

    Every operation of the API is a method, named by its id: ``listProjects`` is ``list_projects``.
    Answers are the API's JSON, typed; times are RFC 3339 texts in UTC. Fields that a newer API adds
    pass through.

    Raises ApiProblem for every error answer and ApiUnreachable without an answer. Requests that
    may safely be repeated are, a few times within two seconds; commands carry an idempotency key
    so that they may be. ``hint`` is the next step if the API is unreachable, ``refused`` if it
    does not accept the token. ``ca`` is a PEM file of the authority of the API's certificate.
    """

    #: Before each attempt to continue a stream; the last one is repeated.
    stream_pauses_s: ClassVar[Sequence[float]] = PAUSES_S

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float = TIMEOUT_S,
        hint: str = "start it with `shoal up`",
        refused: str = REFUSED,
        ca: Path | None = None,
        folder: Path | None = None,
        retry_pauses_s: Sequence[float] = RETRY_PAUSES_S,
        start_pauses_s: Sequence[float] = (),
    ) -> None:
        address = ApiAddress(
            url, hint, refused, ca, folder, timeout_s, retry_pauses_s, start_pauses_s
        )
        self._connection = ApiConnection(address, {"Authorization": f"Bearer {token}"})
        super().__init__(self._connection)
        self.url = self._connection.url

    @classmethod
    def connect(cls, data: Path | None = None) -> Self:
        """Return a client of the cluster that ``find_api`` finds. Raises NoCluster."""
        return cls.of(find_api(data))

    @classmethod
    def of(cls, api: Api) -> Self:
        """Return a client of an API."""
        return cls(
            api.url,
            api.token,
            hint=api.hint,
            refused=api.refused,
            ca=api.ca,
            folder=api.expected,
            start_pauses_s=START_PAUSES_S if api.is_supervised else (),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def live(self) -> bool:
        """Say whether the API answers at all."""
        try:
            return self.get_liveness()["status"] == "ok"
        except (ApiProblem, ApiUnreachable):
            return False

    # -- around operations -------------------------------------------------------------------

    def pages(
        self, operation: Callable[P, Page[T]], *args: P.args, **named: P.kwargs
    ) -> Iterator[T]:
        """Yield the items of all pages that an operation lists, fetched one after the other.

        ::

            for run in shoal.pages(shoal.list_instances, project="flights"):
                print(run["id"])

        ``limit`` is the size of a page, 200 by default.
        """
        call = cast("Callable[..., dict[str, Any]]", operation)
        query = {"limit": PAGE, **named}
        while True:
            page = call(*args, **query)
            yield from page["items"]
            query["cursor"] = page.get("next")
            if query["cursor"] is None:
                return

    def find(self, operation: Callable[P, T], *args: P.args, **named: P.kwargs) -> T | None:
        """Return what an operation answers; None if what it asks for does not exist (404)."""
        try:
            return operation(*args, **named)
        except ApiProblem as problem:
            if problem.status != 404:
                raise
            return None

    def with_project(
        self,
        operation: Callable[Concatenate[str, P], T],
        project: str,
        *args: P.args,
        **named: P.kwargs,
    ) -> T:
        """Return what an operation within a project answers.

        A missing project is made first, if the caller may: the API makes none by itself.
        """
        try:
            return operation(project, *args, **named)
        except ApiProblem as problem:
            if problem.status != 404 or not self._make(project):
                raise
        return operation(project, *args, **named)

    def _make(self, project: str) -> bool:
        from shoal.client.rest.operations.generated.calls import projects

        # Repeated although it has a condition: a second try may find what the first one has made.
        call = replace(projects.put_project(project, {}, if_none_match="*"), repeat=True)
        try:
            self._connection.send(call)
        except ApiProblem as refused:
            return refused.status == 412  # it is there: another client, or try, was quicker
        return True

    def with_etag(
        self, operation: Callable[P, T], *args: P.args, **named: P.kwargs
    ) -> tuple[T, str]:
        """Return an answer and its ETag.

        A change that names the ETag in ``if_match`` is refused (ApiProblem 412) if another user
        has changed the same since.
        """
        return operation(*args, **named), self.etag

    @property
    def etag(self) -> str:
        """The ETag of the newest answer, or ""."""
        return self._connection.etag

    # -- definitions and files ---------------------------------------------------------------

    def publish(
        self,
        definition: "model.WorkflowSpec | Workflow | Mapping[str, Any]",
        *,
        dry_run: bool = False,
    ) -> "PublishOut":
        """Publish a definition; a new version is made only if something changed."""
        body = _definition(definition)
        return self.with_project(
            self.publish_workflow,
            body.get("project", "default"),
            body.get("name", ""),
            cast("WorkflowSpec", body),  # the API checks it, and says all that is wrong
            dry_run=dry_run or None,
        )

    def upload(
        self,
        project: str,
        path: str,
        content: bytes | Path,
        *,
        expected_version: int | None = None,
    ) -> "ResourceOut":
        """Upload a file; the same content as the newest version's makes no new one.

        ``expected_version``: refuse unless this is the newest, 0: unless there is none.
        """
        pieces = _FilePieces(content) if isinstance(content, Path) else content
        return self.with_project(
            self.upload_resource, project, path, pieces, expected_version=expected_version
        )

    # -- runs --------------------------------------------------------------------------------

    def start(
        self,
        project: str,
        workflow: str,
        *,
        version: int | None = None,
        parameters: Mapping[str, str] | None = None,
        logical_time: "datetime | None" = None,
        priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"] | None = None,
        tasks: Sequence[str] = (),
        mode: "SelectionMode | None" = None,
        idempotency_key: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> "CommandOut":
        """Ask for a run of a workflow, or of some of its tasks and those that ``mode`` adds."""
        body: StartCommand = {
            "type": "START",
            "project": project,
            "workflow": workflow,
            "version": version,
            "parameters": dict(parameters or {}),
            "logical_time": logical_time.isoformat() if logical_time else None,
            "priority": priority,
            "tasks": list(tasks) or None,
            "mode": mode,
            "labels": {**(labels or {})},
        }
        return self.create_command(body, idempotency_key=idempotency_key)

    def outcome(self, command: "CommandOut", timeout_s: float = 60.0) -> "CommandOut":
        """Wait until a command is DONE or REFUSED. Raises NotHandled after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        while command["state"] == "PENDING":
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise NotHandled(command["id"], timeout_s)
            command = self.get_command(command["id"], wait=min(LONG_POLL_S, max(left_s, 0.1)))
        return command

    def started(self, command: "CommandOut", timeout_s: float = 60.0) -> int:
        """Return the instance that a command has started. Raises Refused and NotHandled."""
        done = self.outcome(command, timeout_s)
        if done["result_instance_id"] is None:
            raise CommandRefused(done["type"], done["reason"] or "no reason was given")
        return done["result_instance_id"]

    def wait(self, instance_id: int, timeout_s: float = math.inf) -> "InstanceDetail":
        """Wait until an instance has ended, well or not. Raises NotEnded after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        pause_s = FIRST_LOOK_S
        while (found := self.get_instance(instance_id))["state"] not in FINISHED_WORKFLOW:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise NotEnded(instance_id, found["state"], timeout_s)
            time.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, LAST_LOOK_S)
        return found

    def outputs(self, instance_id: int, task: str) -> dict[str, str]:
        """Return the outputs of the newest attempt of a task. Raises NotFound."""
        for attempt in self.get_instance(instance_id)["tasks"]:
            if attempt["task"] == task:
                return self.get_task_instance(attempt["id"])["outputs"]
        raise NotFound(f"instance {instance_id} has no task {task!r}")

    # -- streams -----------------------------------------------------------------------------

    def follow(
        self,
        task_instance_id: int,
        offset: int = 0,
        patience_s: float = 60.0,
        *,
        is_lost: Callable[[], bool] = lambda: False,
    ) -> Iterator[LogChunk]:
        """Yield a log as it is written, and last a chunk with ``end`` set.

        After an interruption the log continues where it broke off. Raises LogBroken if the log
        cannot be continued for ``patience_s``, or if it cannot be read and ``is_lost`` says not to
        wait.
        """
        broken_since: float | None = None
        events = Reconnecting(
            lambda last_id: self.follow_log(task_instance_id, last_event_id=last_id),
            patience_s,
            str(offset) if offset else None,
            self.stream_pauses_s,
        )
        for event in events:
            match event.type:
                case "log":
                    broken_since = None
                    content = event.json()
                    yield LogChunk(content["data"], content["offset"])
                case "end":
                    yield LogChunk("", int(event.id or offset), end=True)
                    return
                case "problem":
                    broken_since = broken_since or time.monotonic()
                    if time.monotonic() - broken_since > patience_s or is_lost():
                        raise LogBroken(task_instance_id, event.json().get("detail", ""))

    def events(
        self,
        *,
        project: str | None = None,
        instance_id: int | None = None,
        after: int | None = None,
        patience_s: float = 60.0,
    ) -> Iterator[Event]:
        """Yield events as they happen, each once, for ever; ``after`` is the last event seen."""
        events = Reconnecting(
            lambda last_id: self.follow_events(
                project=project, instance_id=instance_id, last_event_id=last_id
            ),
            patience_s,
            None if after is None else str(after),
            self.stream_pauses_s,
        )
        for event in events:
            yield cast(Event, event.json())


class _FilePieces(Iterable[bytes]):
    """A file's content, from its beginning each time that it is sent."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __iter__(self) -> Iterator[bytes]:
        with self._file.open("rb") as source:
            while piece := source.read(_PIECE):
                yield piece


def _definition(
    definition: "model.WorkflowSpec | Workflow | Mapping[str, Any]",
) -> dict[str, Any]:
    if isinstance(definition, Mapping):
        return dict(definition)
    from shoal.client.sdk.workflow import Workflow

    spec = definition.spec() if isinstance(definition, Workflow) else definition
    return {"project": spec.project, **spec.canonical()}
