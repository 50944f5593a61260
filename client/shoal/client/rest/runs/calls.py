"""Runs over REST: lists by any mix of filters, counts, labels."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypedDict, Unpack, cast

from shoal.client.rest.connection import PAGE, Connection
from shoal.client.rest.runs.types import (
    BulkJson,
    ComparisonJson,
    CountsJson,
    LogHitsJson,
    PastDetailJson,
    PastInstanceJson,
    RenderedJson,
    StartPreviewJson,
    TaskHitsJson,
    TimelineJson,
)
from shoal.client.rest.types import InstanceJson, LogJson, TaskInstanceJson


class _Filters(TypedDict, total=False):
    project: str | None
    workflow: str | None
    states: Sequence[str]
    labels: Sequence[str]  # KEY=VALUE, or KEY for any value
    started_since: datetime | None
    started_until: datetime | None
    finished_since: datetime | None
    finished_until: datetime | None
    shortest: float | None  # seconds
    longest: float | None
    text: str | None


class InstanceFilters(_Filters, total=False):
    """What instances are limited to; what is left out does not limit them."""

    schedule_id: int | None
    backfill_id: int | None
    parent_id: int | None
    rerun_of: int | None
    version: int | None
    priorities: Sequence[str]
    since: datetime | None  # of creation
    until: datetime | None
    logical_since: datetime | None
    logical_until: datetime | None
    late: bool | None  # beyond the deadline, or not


class TaskFilters(_Filters, total=False):
    """What attempts are limited to."""

    worker: str | None
    instance_id: int | None
    task: str | None
    type: str | None
    worker_group: str | None
    environment: str | None
    fingerprint: str | None  # of the error line


_REPEATABLE = {"states": "state", "labels": "label", "priorities": "priority"}


def query_of(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return filters as parameters of a query."""
    return {
        _REPEATABLE.get(name, name): value.isoformat()
        if isinstance(value, datetime)
        else list(value)
        if name in _REPEATABLE
        else value
        for name, value in filters.items()
    }


class RunCalls:
    """What the API says of many runs, and what it is asked of them."""

    _connection: Connection

    def instances(
        self, *, sort: str | None = None, page: int = PAGE, **filters: Unpack[InstanceFilters]
    ) -> Iterator[InstanceJson]:
        """Yield the instances that fulfil all filters, newest first unless ``sort`` differs."""
        query = {**query_of(filters), "sort": sort}
        return cast("Iterator[InstanceJson]", self._connection.pages("/instances", query, page))

    def past_instances(
        self,
        *,
        project: str | None = None,
        workflow: str | None = None,
        states: Sequence[str] = (),
        first: date | None = None,
        last: date | None = None,
        page: int = PAGE,
    ) -> Iterator[PastInstanceJson]:
        """Yield runs out of the exported history, the newest end first, purged ones included.

        ``first``, ``last``: days of the end (UTC), both included.
        """
        query = {
            "project": project,
            "workflow": workflow,
            "state": list(states),
            "from": first and first.isoformat(),
            "to": last and last.isoformat(),
        }
        found = self._connection.pages("/past-instances", query, page)
        return cast("Iterator[PastInstanceJson]", found)

    def past_instance(self, instance_id: int) -> PastDetailJson:
        """Return a run with its attempts and its plan out of the exported history."""
        return cast(PastDetailJson, self._connection.get(f"/past-instances/{instance_id:d}"))

    def past_log(
        self, instance_id: int, attempt_id: int, offset: int = 0, limit: int = 64 * 1024
    ) -> LogJson:
        """Return a range of the log of a past attempt, as far as the archive has it."""
        path = f"/past-instances/{instance_id:d}/attempts/{attempt_id:d}/log"
        return cast(LogJson, self._connection.get(path, {"offset": offset, "limit": limit}))

    def task_instances(
        self, *, sort: str | None = None, page: int = PAGE, **filters: Unpack[TaskFilters]
    ) -> Iterator[TaskInstanceJson]:
        """Yield the attempts that fulfil all filters, newest first unless ``sort`` differs."""
        query = {**query_of(filters), "sort": sort}
        found = self._connection.pages("/task-instances", query, page)
        return cast("Iterator[TaskInstanceJson]", found)

    def count_instances(self, **filters: Unpack[InstanceFilters]) -> CountsJson:
        """Return how many instances fulfil all filters, by state; never counted beyond 1,000."""
        return cast(CountsJson, self._connection.get("/instance-counts", query_of(filters)))

    def count_task_instances(self, **filters: Unpack[TaskFilters]) -> CountsJson:
        """Return how many of the newest attempts fulfil all filters, by state."""
        return cast(CountsJson, self._connection.get("/task-instance-counts", query_of(filters)))

    def label_instance(self, instance_id: int, labels: Mapping[str, str | None]) -> dict[str, str]:
        """Set labels of an instance, remove those with None; return all that it has then."""
        path, body = f"/instances/{instance_id:d}/labels", {"labels": dict(labels)}
        found = self._connection.json("PATCH", path, json=body)
        return cast("dict[str, str]", found["labels"])

    # -- the same request to many ---------------------------------------------------------------

    def preview_bulk(
        self,
        kind: str,
        ids: Sequence[int] | None = None,
        *,
        tasks: Sequence[str] = (),
        mode: str | None = None,
        reason: str | None = None,
        **filters: Unpack[InstanceFilters],
    ) -> BulkJson:
        """Return what a request would do to each of the ids, or of what the filters mean.

        ``kind``: PAUSE, RESUME, STOP, RECOVER, RERUN or RERUN_TASKS of instances; KILL_TASK or
        FORCE_SUCCESS of task instances.
        """
        body = _bulk_body(kind, ids, tasks, mode, reason, None)
        query = {**query_of(filters), "dry_run": True}
        return cast(BulkJson, self._connection.json("POST", "/bulk-commands", query, json=body))

    def bulk(
        self,
        kind: str,
        ids: Sequence[int] | None = None,
        *,
        tasks: Sequence[str] = (),
        mode: str | None = None,
        reason: str | None = None,
        digest: str | None = None,
        idempotency_key: str | None = None,
        **filters: Unpack[InstanceFilters],
    ) -> BulkJson:
        """Store a command for each; ``digest`` of a preview: exactly for those that it has shown.

        Filters need one. Repeated safely if the answer gets lost.
        """
        body = _bulk_body(kind, ids, tasks, mode, reason, digest)
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        found = self._connection.json(
            "POST", "/bulk-commands", query_of(filters), json=body, headers=headers
        )
        return cast(BulkJson, found)

    # -- logs -----------------------------------------------------------------------------------

    def search_log(
        self,
        task_instance_id: int,
        *,
        text: str | None = None,
        regex: str | None = None,
        ignore_case: bool = False,
        context: int = 0,
        offset: int = 0,
        limit: int = 100,
    ) -> LogHitsJson:
        """Return lines of a log, from a byte on; ``next_offset`` is where to go on."""
        query = {
            "text": text,
            "regex": regex,
            "ignore_case": ignore_case or None,
            "context": context or None,
            "offset": offset,
            "limit": limit,
        }
        path = f"/task-instances/{task_instance_id:d}/log/search"
        return cast(LogHitsJson, self._connection.get(path, query))

    def search_logs(
        self,
        instance_id: int,
        *,
        text: str | None = None,
        regex: str | None = None,
        ignore_case: bool = False,
        context: int = 0,
        every: bool = False,
    ) -> Iterator[TaskHitsJson]:
        """Yield lines of the logs of an instance's tasks; ``every``: of earlier attempts too."""
        query = {
            "text": text,
            "regex": regex,
            "ignore_case": ignore_case or None,
            "context": context or None,
            "every": every or None,
        }
        found = self._connection.pages(f"/instances/{instance_id:d}/log-search", query)
        return cast("Iterator[TaskHitsJson]", found)

    # -- what would be, and what was ------------------------------------------------------------

    def preview_start(
        self,
        project: str,
        workflow: str,
        *,
        version: int | None = None,
        parameters: Mapping[str, str] | None = None,
        logical_time: datetime | None = None,
        priority: str | None = None,
        tasks: Sequence[str] = (),
        mode: str | None = None,
        labels: Mapping[str, str] | None = None,
        render: Sequence[str] | None = None,
    ) -> StartPreviewJson:
        """Return the run that a start would make, its tasks rendered, secrets masked."""
        body = {
            "project": project,
            "workflow": workflow,
            "version": version,
            "parameters": dict(parameters or {}),
            "logical_time": logical_time.isoformat() if logical_time else None,
            "priority": priority,
            "tasks": list(tasks) or None,
            "mode": mode,
            "labels": dict(labels or {}),
            "render": None if render is None else list(render),
        }
        found = self._connection.json("POST", "/start-previews", json=body)
        return cast(StartPreviewJson, found)

    def rendered(self, task_instance_id: int) -> RenderedJson:
        """Return what an attempt gets: its params and parameters, secrets masked."""
        path = f"/task-instances/{task_instance_id:d}/rendered"
        return cast(RenderedJson, self._connection.get(path))

    def compare(self, instance_id: int, other_id: int) -> ComparisonJson:
        """Return how another instance differs from one."""
        path = f"/instances/{instance_id:d}/comparison/{other_id:d}"
        return cast(ComparisonJson, self._connection.get(path))

    def timeline(self, instance_id: int, *, every: bool = False) -> TimelineJson:
        """Return when the attempts of an instance worked, and its critical path."""
        path = f"/instances/{instance_id:d}/timeline"
        return cast(TimelineJson, self._connection.get(path, {"every": every or None}))


def _bulk_body(
    kind: str,
    ids: Sequence[int] | None,
    tasks: Sequence[str],
    mode: str | None,
    reason: str | None,
    digest: str | None,
) -> dict[str, Any]:
    body = {
        "type": kind,
        "ids": None if ids is None else list(ids),
        "tasks": list(tasks) or None,
        "mode": mode,
        "reason": reason,
        "digest": digest,
    }
    return {name: value for name, value in body.items() if value is not None}
