"""Junk in every kind of row: callers get an error for it, and see everything else.

The junk is what a newer version, a bug or a person with a database client may leave in a column.
One column of one row is spoilt at a time, and then every route is asked that reads the table.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx
import pytest
from sqlalchemy import Column, Engine, Table, event, text

from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import create_key
from shoal.sql.schema import tables
from shoal.sql.schema.types import Json, OneLine, Prose, UtcDateTime
from tests.contract.described import described
from tests.integration.api.cluster.spoilt_rows import NAMES, ROWS, spoil
from tests.integration.api.conftest import PREFIX, Api
from tests.integration.api.stock import stocked

JSONS = ("not json", "17", '{"a":{"b":[null]}}')
TEXTS = ("JUNK",)
NUMBERS = (-1,)
MOMENTS = (2**62,)


@dataclass(frozen=True)
class Stock:
    """What each kind of row is called, in a good and in a bad workflow of projects of their own."""

    good: Mapping[str, Any]
    bad: Mapping[str, Any]


async def stock(api: Api) -> Stock:
    """Make some rows of every kind, twice."""
    return Stock(await stocked(api, "good"), await stocked(api, "bad"))


def values(column: Column[Any]) -> tuple[Any, ...]:
    """Return what a column may hold that nobody foresaw."""
    kind = column.type
    found: tuple[Any, ...]
    if isinstance(kind, Json):
        found = JSONS
    elif isinstance(kind, OneLine | Prose):
        found = TEXTS
    elif isinstance(kind, UtcDateTime):
        found = MOMENTS
    else:
        found = (*NUMBERS, "JUNK")
    return (*found, None) if column.nullable else found


def spoilable(table: Table) -> Iterator[Column[Any]]:
    """Yield the columns that say something of a row, not which one it is."""
    kind = tables.data_source.c.kind
    return (column for column in table.c if column is kind or column.name not in NAMES)


# What tells of the cluster, its members, their logs and of accounts, not of rows of projects.
OTHER: tuple[str, ...] = (
    "/health",
    "/cluster",
    "/task-types",
    "-kinds",
    "/stores",
    "/events",
    "/log",
)
OTHER += (
    "/me",
    "/users",
    "/groups",
    "/service-accounts",
    "-counts",
    "/audit",
    "/secrets-keys",
    "/grants/{",
    "/resource-grants",
    "/restrictions",
    "/insight/",
)
OTHER += ("/masters", "/workers", "/worker-groups", "/partitions", "/takeovers", "/past-instances")
NAMED = {
    "calendars": "days",
    "concurrency-groups": "gpu",
    "data-sources": "wh",
    "workflows": "daily",
    "parameters": "x",
    "secrets": "s",
    "alert-rules": "night",
    "alert-receivers": "people",
    "alert-channels": "hook",
}


@cache
def _readable() -> tuple[str, ...]:
    """Return the routes to ask, which takes seconds."""
    return tuple(
        path
        for path, methods in described()["paths"].items()
        if "get" in methods and not any(part in path for part in OTHER)
    )


# What the good workflow's run and schedule say is the same whatever the bad one's rows hold.
UNHARMED = {f"{PREFIX}/instances/{{instance_id}}", f"{PREFIX}/schedules/{{schedule_id}}/preview"}


def paths(which: Mapping[str, Any]) -> dict[str, str]:
    """Return where to ask about what was made, by the route."""
    return {path: path.format(**which, name=_name(path, which)) for path in _readable()}


def _name(path: str, which: Mapping[str, Any]) -> str:
    if "/environments/" in path:
        return str(which["project"])
    return NAMED.get((path.split("/") + [""] * 6)[5], "")


def lists_good(answer: httpx.Response, made: Stock) -> bool:
    """Whether a list of what all projects have shows the one without junk."""
    content = answer.json()
    items = content if isinstance(content, list) else content["items"]
    good = made.good["project"]
    return any(good in (one.get("project"), one.get("name")) for one in items)


@pytest.fixture(scope="module")
def statements() -> dict[str, str]:
    """What the database is asked for the answer of each route; the first test finds it out."""
    return {}


@pytest.mark.parametrize("table", ROWS, ids=lambda table: table.name)
async def test_junk_in_a_row_is_told_of_and_hides_nothing_else(
    api: Api, cluster: ClusterSettings, statements: dict[str, str], table: Table
) -> None:
    create_key(cluster.secrets_key_file)
    made = await stock(api)
    bad, good = paths(made.bad), paths(made.good)
    if not statements:
        statements.update({route: await _statements(api, bad[route]) for route in bad})
    reading = {route for route in bad if re.search(rf"\b{table.name}\b", statements[route])}
    assert reading
    written = 0
    for column in spoilable(table):
        before = await stored(api, column)
        for value in values(column):
            if not await spoil(api, column, value, made.bad):
                continue
            written += 1
            what = f"{column} = {value!r}"
            for route in reading:
                answer = await api.client.get(bad[route])
                if "resource-contents" in route and answer.status_code == 503:
                    assert answer.json()["type"] == "/problems/storage-unavailable", what
                elif "{" in route and answer.status_code in (409, 422):
                    document = answer.json()
                    assert document["type"] in ("/problems/unreadable", "/problems/invalid-request")
                    assert document["detail"], what
                elif "{" in route:
                    # A version that there is not is said to be missing.
                    assert answer.status_code in (200, 404), f"{what}: {route} {answer.text}"
                else:
                    assert answer.status_code == 200, f"{what}: {route} {answer.text}"
                    assert lists_good(answer, made), f"{what}: {route} {answer.text}"
            for route in reading & UNHARMED:
                answer = await api.client.get(good[route])
                assert answer.status_code == 200, f"{what}: {route} {answer.text}"
        await restore(api, column, before)
    assert written > 2


async def _statements(api: Api, path: str) -> str:
    """Return what the database is asked for one answer."""
    found: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        await api.client.get(path)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    return "\n".join(found)


async def stored(api: Api, column: Column[Any]) -> list[tuple[Any, ...]]:
    """Return the keys and the value of each row, as they are stored."""
    names = ", ".join(f'"{key.name}"' for key in column.table.primary_key)
    query = text(f'SELECT {names}, "{column.name}" FROM "{column.table.name}"')
    async with api.services.store.unit_of_work(read_only=True) as uow:
        return [tuple(row) for row in await uow.connection.execute(query)]


async def restore(api: Api, column: Column[Any], before: list[tuple[Any, ...]]) -> None:
    """Write back what ``stored`` has returned."""
    keys = [key.name for key in column.table.primary_key]
    where = " AND ".join(f'"{key}" = :key_{key}' for key in keys)
    statement = text(f'UPDATE "{column.table.name}" SET "{column.name}" = :value WHERE {where}')
    async with api.services.store.unit_of_work() as uow:
        for *of, value in before:
            named = {f"key_{key}": one for key, one in zip(keys, of, strict=True)}
            await uow.connection.execute(statement, {"value": value, **named})
        await uow.commit()


@pytest.mark.parametrize("column", ["parameters", "created_at"])
async def test_page_of_instances_goes_on_behind_rows_that_cannot_be_read(
    api: Api, column: str
) -> None:
    runs = [(await api.run()).id for _ in range(5)]
    junk = 2**62 if column == "created_at" else "not json"
    statement = f"UPDATE workflow_instance SET {column} = :junk WHERE id IN (:one, :two)"
    async with api.services.store.unit_of_work() as uow:
        named = {"junk": junk, "one": runs[2], "two": runs[3]}
        await uow.connection.execute(text(statement), named)
        await uow.commit()
    seen, query = [], "limit=2"
    while True:
        answer = (await api.client.get(f"{PREFIX}/instances?{query}")).json()
        seen += [one["id"] for one in answer["items"]]
        if answer["next"] is None:
            break
        query = f"limit=2&cursor={answer['next']}"
    assert seen == [runs[4], runs[1], runs[0]]
