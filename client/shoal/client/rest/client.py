"""The API as Python calls, in the words of people: waiting, publishing, following.

Synchronous; one client belongs to one thread at a time. Answers are the API's JSON, typed. Every
operation as it is, is a method of ``ShoalClient.operations``.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from shoal.client.errors import ApiProblem, ApiUnreachable, LogBroken, NotEnded, NotFound
from shoal.client.find import REFUSED, Api, find_api
from shoal.client.rest.access.calls import AccessCalls
from shoal.client.rest.backfills import BackfillCalls
from shoal.client.rest.commands import CommandCalls
from shoal.client.rest.connection import Connection
from shoal.client.rest.environments import EnvironmentCalls
from shoal.client.rest.operations.generated.operations import Operations
from shoal.client.rest.paths import part, workflow_path
from shoal.client.rest.project.alerts import AlertCalls
from shoal.client.rest.project.concurrency import ConcurrencyCalls
from shoal.client.rest.project.data_sources import DataSourceCalls
from shoal.client.rest.project.keys import KeyCalls
from shoal.client.rest.project.resources import ResourceCalls
from shoal.client.rest.project.values import ValueCalls
from shoal.client.rest.purges import PurgeCalls
from shoal.client.rest.runs.calls import RunCalls
from shoal.client.rest.runs.insight import InsightCalls
from shoal.client.rest.runs.views import ViewCalls
from shoal.client.rest.sse import Reconnecting
from shoal.client.rest.types import (
    ClusterJson,
    EventJson,
    HealthJson,
    InstanceDetailJson,
    LogJson,
    MasterJson,
    ProgressJson,
    ProjectJson,
    PublishJson,
    TaskDetailJson,
    TaskTypeJson,
    WhyJson,
    WorkerJson,
    WorkflowDetailJson,
    WorkflowJson,
)
from shoal.client.rest.workflows.drafts import DraftCalls
from shoal.client.rest.workflows.lifecycle import LifecycleCalls
from shoal.client.rest.workflows.schedules import ScheduleCalls
from shoal.core.runs.states import FINISHED_WORKFLOW

if TYPE_CHECKING:
    from shoal.client.sdk.workflow import Workflow
    from shoal.core.definition.model import WorkflowSpec

TIMEOUT_S = 30.0
# Between two looks at a run that somebody waits for: doubled from the first to the last.
FIRST_LOOK_S, LAST_LOOK_S = 0.1, 2.0


@dataclass(frozen=True)
class LogChunk:
    """Some text of a log. ``offset`` is its first byte; ``end`` marks the end of the log."""

    data: str
    offset: int
    end: bool = False


class ShoalClient(
    CommandCalls,
    DraftCalls,
    LifecycleCalls,
    ScheduleCalls,
    BackfillCalls,
    ValueCalls,
    KeyCalls,
    DataSourceCalls,
    ConcurrencyCalls,
    AlertCalls,
    EnvironmentCalls,
    PurgeCalls,
    ResourceCalls,
    AccessCalls,
    RunCalls,
    ViewCalls,
    InsightCalls,
):
    """A connection to the API at ``url``, such as http://127.0.0.1:8765.

    Raises ApiProblem for every error answer and ApiUnreachable if there is none. Requests that
    may safely be repeated are, a few times within two seconds; commands carry an idempotency key
    so that they may be. ``hint`` says what to do when nothing answers, ``refused`` when the token
    is not accepted. ``ca`` is a PEM file of the authority that the API's certificate is from.
    """

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
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._connection = Connection(
            url, headers, timeout_s, hint, refused=refused, ca=ca, folder=folder
        )
        self.url = self._connection.url
        #: A method for each operation of the API, as ``AsyncShoalClient`` has them.
        self.operations = Operations(self._connection)

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
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    # -- health and cluster ------------------------------------------------------------------

    def live(self) -> bool:
        """Say whether the API answers at all."""
        try:
            return bool(self._connection.get("/health/live")["status"] == "ok")
        except (ApiProblem, ApiUnreachable):
            return False

    def health(self) -> HealthJson:
        """Return whether the cluster can do its work, also if it cannot."""
        return cast(HealthJson, self._connection.get("/health"))

    def cluster(self) -> ClusterJson:
        """Return masters, workers, partitions and queues."""
        return cast(ClusterJson, self._connection.get("/cluster"))

    def masters(self) -> Iterator[MasterJson]:
        """Yield the live masters by id."""
        return cast("Iterator[MasterJson]", self._connection.pages("/masters", {}))

    def workers(
        self, group: str | None = None, *, paused: bool | None = None
    ) -> Iterator[WorkerJson]:
        """Yield the live workers by id; ``paused``: those that take no tasks, or the others."""
        query = {"group": group, "paused": paused}
        return cast("Iterator[WorkerJson]", self._connection.pages("/workers", query))

    def worker_groups(self) -> Iterator[dict[str, Any]]:
        """Yield the groups of workers, each with what waits for it."""
        return self._connection.pages("/worker-groups", {})

    def queue_entries(self, group: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield what waits for workers, of all groups or one, as it will be claimed."""
        return self._connection.pages("/queue-entries", {"group": group})

    def partitions(self, owner: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the partitions, or those of a master; an empty ``owner``: those without one."""
        return self._connection.pages("/partitions", {"owner": owner})

    def takeovers(self) -> Iterator[dict[str, Any]]:
        """Yield the changes of partitions' owners, newest first."""
        return self._connection.pages("/takeovers", {})

    def task_types(self) -> list[TaskTypeJson]:
        """Return the installed task types with the JSON Schema of their params."""
        return cast("list[TaskTypeJson]", list(self._connection.pages("/task-types", {})))

    # -- projects and workflows --------------------------------------------------------------

    def projects(self) -> Iterator[ProjectJson]:
        """Yield all projects by name."""
        return cast("Iterator[ProjectJson]", self._connection.pages("/projects", {}))

    def project(self, name: str) -> ProjectJson:
        """Return one project."""
        return cast(ProjectJson, self._connection.get(f"/projects/{part(name)}"))

    def put_project(self, name: str, description: str = "") -> ProjectJson:
        """Create a project or change its description."""
        body = {"description": description}
        return cast(ProjectJson, self._connection.json("PUT", f"/projects/{part(name)}", json=body))

    def workflows(
        self,
        project: str | None = None,
        search: str | None = None,
        *,
        labels: Sequence[str] = (),
        owner: str | None = None,
        archived: Literal["false", "true", "any"] = "false",
        sort: Literal["name", "-updated_at"] = "name",
    ) -> Iterator[WorkflowJson]:
        """Yield workflows; ``labels``, each KEY or KEY=VALUE: those that have all of them."""
        query = {
            "project": project,
            "search": search,
            "label": list(labels),
            "owner": owner,
            "archived": None if archived == "false" else archived,
            "sort": None if sort == "name" else sort,
        }
        return cast("Iterator[WorkflowJson]", self._connection.pages("/workflows", query))

    def publish(
        self, definition: "WorkflowSpec | Workflow | Mapping[str, Any]", *, dry_run: bool = False
    ) -> PublishJson:
        """Publish a definition; a new version is made only if something changed."""
        body = _definition(definition)
        project = body.get("project", "default")
        path = workflow_path(project, body.get("name", ""))
        query = {"dry_run": dry_run or None}
        return cast(PublishJson, self._connection.put_in(project, path, query, json=body))

    def workflow(self, project: str, name: str) -> WorkflowDetailJson:
        """Return a workflow with its newest definition."""
        return cast(WorkflowDetailJson, self._connection.get(workflow_path(project, name)))

    # -- instances ---------------------------------------------------------------------------

    def instance(
        self, instance_id: int, attempts: Literal["newest", "all"] = "newest"
    ) -> InstanceDetailJson:
        """Return an instance with its tasks in the order of the definition."""
        query = {"attempts": attempts if attempts == "all" else None}
        return cast(InstanceDetailJson, self._connection.get(f"/instances/{instance_id:d}", query))

    def wait(self, instance_id: int, timeout_s: float = math.inf) -> InstanceDetailJson:
        """Wait until an instance has ended, well or not. Raises NotEnded after ``timeout_s``."""
        deadline = time.monotonic() + timeout_s
        pause_s = FIRST_LOOK_S
        while (found := self.instance(instance_id))["state"] not in FINISHED_WORKFLOW:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise NotEnded(instance_id, found["state"], timeout_s)
            time.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, LAST_LOOK_S)
        return found

    def outputs(self, instance_id: int, task: str) -> dict[str, str]:
        """Return what the newest attempt of a task has given on. Raises NotFound."""
        for attempt in self.instance(instance_id)["tasks"]:
            if attempt["task"] == task:
                return self.task_instance(attempt["id"])["outputs"]
        raise NotFound(f"instance {instance_id} has no task {task!r}")

    def progress(self, instance_id: int) -> list[ProgressJson]:
        """Return how far the running tasks of an instance are, as far as they say so."""
        found = self._connection.get(f"/instances/{instance_id:d}/progress")
        return cast(list[ProgressJson], found)

    def why_instance(self, instance_id: int) -> WhyJson:
        """Return what an instance waits for."""
        return cast(WhyJson, self._connection.get(f"/instances/{instance_id:d}/why"))

    def why_task_instance(self, task_instance_id: int) -> WhyJson:
        """Return what an attempt waits for, or why it ended."""
        return cast(WhyJson, self._connection.get(f"/task-instances/{task_instance_id:d}/why"))

    def task_instance(self, task_instance_id: int) -> TaskDetailJson:
        """Return one attempt of one task."""
        return cast(TaskDetailJson, self._connection.get(f"/task-instances/{task_instance_id:d}"))

    # -- logs and events ---------------------------------------------------------------------

    def log(self, task_instance_id: int, offset: int = 0, limit: int = 65536) -> LogJson:
        """Return a range of a log as text; a negative offset counts from the end."""
        query = {"offset": offset, "limit": limit}
        return cast(
            LogJson, self._connection.get(f"/task-instances/{task_instance_id:d}/log", query)
        )

    @contextmanager
    def download_log(self, task_instance_id: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Yield the size and the bytes of a whole log."""
        path = f"/task-instances/{task_instance_id:d}/log/raw"
        with self._connection.stream(path) as response:
            size = int(response.headers.get("Content-Length", 0))
            yield size, response.iter_bytes()

    def follow_log(
        self,
        task_instance_id: int,
        offset: int = 0,
        patience_s: float = 60.0,
        *,
        is_lost: Callable[[], bool] = lambda: False,
    ) -> Iterator[LogChunk]:
        """Yield a log as it is written, and last a chunk with ``end`` set.

        Interruptions are mended where the text broke off. Raises LogBroken if the log cannot be
        continued for ``patience_s``, or if it cannot be had and ``is_lost`` says not to wait.
        """
        path = f"/task-instances/{task_instance_id:d}/log/follow"
        broken_since: float | None = None
        events = Reconnecting(
            lambda last_id: self._connection.stream(path, last_id),
            patience_s,
            str(offset) if offset else None,
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
    ) -> Iterator[EventJson]:
        """Yield what happens, each event once, for ever; ``after`` is the last event seen."""
        query = {"project": project, "instance_id": instance_id}
        last_id = None if after is None else str(after)
        events = Reconnecting(
            lambda last: self._connection.stream("/events", last, query), patience_s, last_id
        )
        for event in events:
            yield cast(EventJson, event.json())


def _definition(definition: "WorkflowSpec | Workflow | Mapping[str, Any]") -> dict[str, Any]:
    if isinstance(definition, Mapping):
        return dict(definition)
    from shoal.client.sdk.workflow import Workflow

    spec = definition.spec() if isinstance(definition, Workflow) else definition
    return {"project": spec.project, **spec.canonical()}
