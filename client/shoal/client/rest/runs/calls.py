"""Runs over REST: lists by any mix of filters, counts, labels."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack, cast

from shoal.client.rest.connection import PAGE, Connection
from shoal.client.rest.runs.types import CountsJson
from shoal.client.rest.types import InstanceJson, TaskInstanceJson


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


class TaskFilters(_Filters, total=False):
    """What attempts are limited to."""

    worker: str | None
    instance_id: int | None
    task: str | None
    type: str | None
    worker_group: str | None
    environment: str | None


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
    """What the API says of many runs."""

    _connection: Connection

    def instances(
        self, *, sort: str | None = None, page: int = PAGE, **filters: Unpack[InstanceFilters]
    ) -> Iterator[InstanceJson]:
        """Yield the instances that fulfil all filters, newest first unless ``sort`` differs."""
        query = {**query_of(filters), "sort": sort}
        return cast("Iterator[InstanceJson]", self._connection.pages("/instances", query, page))

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
