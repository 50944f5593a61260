"""The matrix: every route, asked by every kind of caller, about things of every project.

A refusal has the status that the table says, changes nothing, and tells nothing: what is hidden is
answered as if it were missing.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy import text

from shoal.api.access.audit import Auditor
from shoal.api.access.identities import LOOK_S
from shoal.api.app import create_app
from shoal.api.pages.openapi import describe, resolve
from shoal.api.settings import ApiSettings
from shoal.core.access.audit.entries import NewEntry
from shoal.core.access.permissions import OF_PROJECT
from shoal.core.access.principals import EVERYTHING
from shoal.core.logic.children import MapParams, SubWorkflowParams
from shoal.core.logic.dependent import DependentParams
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import create_key
from shoal.sql import UnitOfWork
from shoal.sql.repositories.access.audit import Audit
from shoal.sql.schema.tables import metadata
from tests.integration.api.access.people import Person, account, people, session, token
from tests.integration.api.access.table import (
    FIELDS,
    FILTERED,
    LISTS,
    MISSING_ID,
    MISSING_NAME,
    NEEDS,
    PLACES,
    QUERIES,
    REACHES,
    STREAMS,
    SUBJECT_IN_BODY,
    SUBJECTS,
    WAYS_IN,
    Ask,
    Made,
    Place,
    Route,
    ask,
    is_about_project,
    places_in_paths,
)
from tests.integration.api.conftest import PREFIX, Api, in_process, opened
from tests.integration.api.stock import carried_out, stocked
from tests.support.waiting import DEADLINE_S

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALPHA, BRAVO = "alpha", "bravo"
FIRST_ID = 400_000_000  # so that no id stands in a text by chance
_LEAVE_OUT = (
    "INSERT INTO sqlite_sequence (name, seq) SELECT :name, 0 WHERE :first > 0"
    " AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = :name)",
    "UPDATE sqlite_sequence SET seq = seq + :first WHERE name = :name",
)
# Answers about what is hidden, and about what there is not, are the same to the last byte.
_SAME = {"X-Request-Id": "same"}


@dataclass
class World:
    """An API with two projects that have the same things, and callers of every kind."""

    api: Api
    file: str  # of the database
    people: list[Person]
    made: Mapping[str, Made]
    app: FastAPI
    description: dict[str, Any]

    async def send(self, person: Person, asked: Ask) -> httpx.Response:
        """Send a request as somebody, and nothing of anybody else."""
        content = {"content": asked.body} if isinstance(asked.body, bytes) else {"json": asked.body}
        if asked.body is None:
            content = {}
        async with httpx.AsyncClient(
            transport=self.api.client._transport, base_url="http://localhost"
        ) as client:
            return await client.request(
                asked.method, PREFIX + asked.path, headers={**person.headers, **_SAME}, **content
            )

    def person(self, name: str) -> Person:
        """Return a caller by name."""
        return next(one for one in self.people if one.name == name)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(module_cluster: ClusterSettings) -> AsyncIterator[World]:
    """What all tests of this module look at; none of them changes it."""
    create_key(module_cluster.secrets_key_file)
    settings = ApiSettings(port=0, heartbeat_s=0.2)
    patch = pytest.MonkeyPatch()
    patch.setattr(Auditor, "GATHER_S", 3600.0)  # refusals are stored later, by themselves
    patch.setattr(Auditor, "IDLE_S", 3600.0)
    async with opened(module_cluster, settings) as services, in_process(services) as api:
        await _leave_out_ids(api)
        alpha = await stocked(api, ALPHA, "word-of-alpha")
        await _leave_out_ids(api)
        bravo = await stocked(api, BRAVO, "word-of-bravo")
        made: dict[str, dict[str, Any]] = {ALPHA: alpha, BRAVO: bravo}
        async with services.store.unit_of_work() as uow:
            now = services.store.clock()
            for project in made.values():
                await _with_accounts(uow, project, services.store.clock)
            found = await people(uow, now, ALPHA, BRAVO)
            await uow.commit()
        file = module_cluster.database.removeprefix("sqlite:///")
        app = create_app(services)
        yield World(api, file, found, made, app, describe(app))
    patch.undo()


async def _leave_out_ids(api: Api) -> None:
    async with api.services.store.unit_of_work() as uow:
        for table in metadata.sorted_tables:
            if table.dialect_options["sqlite"]["autoincrement"]:
                named = {"name": table.name, "first": FIRST_ID}
                for statement in _LEAVE_OUT:
                    await uow.connection.execute(text(statement), named)
        await uow.commit()


async def _with_accounts(uow: UnitOfWork, made: dict[str, Any], clock: Any) -> None:
    project, now = made["project"], clock()
    bot = await account(uow, f"{project}/bot", now, {project: "runner"}, of_project=project)
    made["token_id"], _ = await token(uow, bot, now, EVERYTHING)
    user = await account(uow, f"someone-of-{project}", now, {project: "reader"})
    made["session_id"], _ = await session(uow, user, now)
    made["users_token_id"], _ = await token(uow, user, now, EVERYTHING)


@pytest.fixture
def unchanged(world: World) -> Iterator[Any]:
    """A function that says whether nothing was committed since it was last called."""
    with closing(sqlite3.connect(f"file:{world.file}?mode=ro", uri=True)) as database:

        def version() -> int:
            return int(database.execute("PRAGMA data_version").fetchone()[0])

        last = version()

        def nothing_new() -> bool:
            nonlocal last
            before, last = last, version()
            return before == last

        yield nothing_new


def _public(route: Route) -> bool:
    return NEEDS[route] == "public"


# -- the tables are complete ------------------------------------------------------------------


def _operations(world: World) -> Iterator[tuple[Route, dict[str, Any]]]:
    for path, methods in world.description["paths"].items():
        for method, operation in methods.items():
            yield (method.upper(), path.removeprefix(PREFIX)), operation


async def test_every_route_stands_in_the_table_with_the_permission_that_it_declares(
    world: World,
) -> None:
    declared = {
        route: operation.get("x-permission", "public") for route, operation in _operations(world)
    }
    assert declared == dict(NEEDS)


async def test_every_id_of_a_path_is_known(world: World) -> None:
    of_platform = {"purge_id", "name", "member", "provider", "what"}
    of_caller = {"token_id", "session_id"}
    within = {"name", "kind", "path", "version", "request", "token_id", "taker", "attempt_id"}
    for route, operation in _operations(world):
        names = {one["name"] for one in operation.get("parameters", []) if one["in"] == "path"}
        known = {*SUBJECTS, *within} if is_about_project(route) else of_platform | of_caller
        assert names <= known, route


async def test_every_parameter_of_a_query_that_names_a_thing_filters_a_list(world: World) -> None:
    for route, operation in _operations(world):
        for one in operation.get("parameters", []):
            if one["in"] == "query" and _names_a_thing(one["name"]):
                assert one["name"] in QUERIES, (route, one["name"])
                is_of_platform = NEEDS[route] in ("audit.read", "cluster.read")
                is_within = one["name"] != "project" and "{project}" in route[1]
                is_list = route[1] in (*LISTS, *FILTERED, "/events")
                assert is_list or is_of_platform or is_within, route


async def test_every_field_of_a_body_that_names_a_thing_is_known(world: World) -> None:
    found = set()
    for route, operation in _operations(world):
        content = operation.get("requestBody", {}).get("content", {})
        schema = content.get("application/json", {}).get("schema", {})
        found |= {" ".join((*route, name)) for name in set(_fields(world.description, schema))}
    found = {name.replace("tasks[].", "") for name in found}
    assert found == FIELDS.keys()


async def test_every_task_that_names_a_project_has_a_place() -> None:
    """Params of tasks are free in the description of the API; these name projects."""
    models: dict[str, type[BaseModel]] = {
        "SUB_WORKFLOW": SubWorkflowParams,
        "MAP": MapParams,
        "DEPENDENT": DependentParams,
    }
    for kind, model in models.items():
        schema = model.model_json_schema()
        assert "project" in str(schema)
        for where in WAYS_IN:
            assert f"{where} {kind}" in PLACES


def _names_a_thing(name: str) -> bool:
    plain = name.rstrip("s")
    words = ("project", "workflow", "calendar", "instance", "worker", "shared_with")
    return plain in words or name.endswith(("_id", "_ids", "concurrency_group"))


def _fields(description: dict[str, Any], schema: Any, path: str = "") -> Iterator[str]:
    """Yield the fields of a schema that name things, at any depth."""
    if path.count(".") > 6:
        return
    schema = resolve(description, schema)
    for inner in (*schema.get("anyOf", ()), *schema.get("allOf", ()), *schema.get("oneOf", ())):
        yield from _fields(description, inner, path)
    if isinstance(schema.get("items"), dict):
        yield from _fields(description, schema["items"], f"{path}[]" if path else path)
    for name, inner in schema.get("properties", {}).items():
        whole = f"{path}.{name}" if path else name
        if _names_a_thing(name):
            yield whole
        yield from _fields(description, inner, whole)


# -- every route, every caller, every project -------------------------------------------------


def _about(world: World, route: Route) -> Iterator[tuple[str | None, Ask]]:
    """Yield what a route can be asked about: things of each project, or nothing of any."""
    if not is_about_project(route):
        yield None, ask(route, world.made[ALPHA])
        return
    for project, made in world.made.items():
        yield project, ask(route, made)


def _missing(made: Made) -> Made:
    """Return the names of things that there are not."""
    keys = {name: MISSING_ID for name in SUBJECTS if name != "project"}
    return {**made, **keys, "project": MISSING_NAME}


def _without_names(answer: httpx.Response, route: Route, made: Made) -> str:
    """Return the body with each key that the request has named taken out."""
    found = answer.text
    for name in (*SUBJECTS, "attempt_id"):  # that is within the run that the path names, too
        if f"{{{name}}}" in route[1] or (name == "project" and route in SUBJECT_IN_BODY):
            found = found.replace(str(made[name]), "<key>")
    return found


async def test_refusals_have_the_right_status_and_change_and_tell_nothing(
    world: World, unchanged: Any
) -> None:
    refused, failures = 0, []
    assert unchanged()
    for person in world.people:
        for route, permission in NEEDS.items():
            for project, asked in _about(world, route):
                expected = person.expected(permission, project)
                if expected == 200:
                    continue
                answer = await world.send(person, asked)
                refused += 1
                where = f"{person.name}: {' '.join(route)} of {project}"
                if answer.status_code != expected:
                    failures.append(f"{where}: {answer.status_code}, not {expected}")
                if not unchanged():
                    failures.append(f"{where}: something was stored")
                if expected == 404 and project is not None:
                    made, nothing = world.made[project], _missing(world.made[project])
                    missing = await world.send(person, ask(route, nothing))
                    shown = _without_names(answer, route, made)
                    if shown != _without_names(missing, route, nothing):
                        failures.append(f"{where}: {answer.text} is not {missing.text}")
                other = BRAVO if project == ALPHA else ALPHA
                if "word-of-" in answer.text or (project is not None and other in answer.text):
                    failures.append(f"{where}: tells {answer.text}")
    assert not failures, f"{len(failures)} of {refused}:\n" + "\n".join(failures[:40])
    assert refused > 1_000


async def test_callers_that_may_are_let_through(
    world: World, unchanged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(_: UnitOfWork) -> None:
        """All that is done is taken back: the next caller finds the same."""

    monkeypatch.setattr(UnitOfWork, "commit", nothing)
    monkeypatch.setattr(world.api.services.files, "put", _refuse_to_store)
    failures = []
    for person in world.people:
        for route, permission in NEEDS.items():
            is_login = route[1].startswith("/login") or route == ("PUT", "/me/password")
            if route[1] in STREAMS or is_login:
                continue
            for project, asked in _about(world, route):
                if person.expected(permission, project) != 200:
                    continue
                answer = await world.send(person, asked)
                where = f"{person.name}: {' '.join(route)} of {project}: {answer.status_code}"
                is_hidden = answer.status_code == 404 and "there is no project" in answer.text
                is_refused = answer.status_code in (401, 403) or is_hidden
                if is_refused and not _refused_by_itself(person, route):
                    failures.append(f"{where} {answer.text}")
                failures += [
                    f"{where} tells of {name}"
                    for name in world.made
                    if f"word-of-{name}" in answer.text and not person.sees(name)
                ]
    assert not failures, "\n".join(failures[:40])
    assert unchanged()


UNCHANGING = {
    ("POST", "/schedules/preview"),
    ("POST", "/start-previews"),
    ("POST", "/projects/{project}/alert-previews"),
    *(("POST", f"/projects/{{project}}/workflows/{{name}}/{one}") for one in ("validate", "plan")),
    # Who signs in has no rights yet: these bring their entries by themselves.
    *(("POST", path) for path in ("/login", "/login/ldap", "/login/code", "/login/one-time")),
}


async def test_every_route_that_changes_something_names_its_action(world: World) -> None:
    for route, operation in _operations(world):
        is_changing = route[0] not in ("GET", "HEAD") and route not in UNCHANGING
        assert is_changing is ("x-audit" in operation) or route[0] == "GET", route


async def test_every_change_that_is_committed_brings_its_entry(
    world: World, unchanged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: list[NewEntry] = []
    commits = 0

    async def taken_back(uow: UnitOfWork) -> None:
        nonlocal commits
        commits += 1
        if uow._recorder is not None:
            await uow._recorder(uow)

    async def add(_: Audit, new: list[NewEntry]) -> None:
        entries.extend(new)

    monkeypatch.setattr(UnitOfWork, "commit", taken_back)
    monkeypatch.setattr(Audit, "add", add)
    boss, asked, operations = world.person("boss"), 0, dict(_operations(world))
    for route, permission in NEEDS.items():
        if route[0] == "GET" or route in UNCHANGING or route[1].endswith("/test"):
            continue
        if "resource-contents" in route[1]:
            continue  # nothing is committed, so a file would stay
        entries.clear()
        commits = 0
        answer = await world.send(boss, ask(route, world.made[ALPHA]))
        if answer.is_success and commits:
            asked += 1
            [entry] = entries
            action = operations[route]["x-audit"]
            assert entry.action == action or action == "command.request", route
            assert entry.principal == boss.name
            assert entry.project == (ALPHA if permission in OF_PROJECT else entry.project), route
    assert asked > 20
    assert unchanged()


async def _refuse_to_store(*_: object) -> None:
    raise AssertionError("an upload begins")


def _refused_by_itself(person: Person, route: Route) -> bool:
    """Say whether a handler asks for more than its permission."""
    if route == ("POST", "/me/tokens"):
        return "Cookie" not in person.headers
    if route == ("POST", "/sign-in-codes"):
        return person.name != "break-glass"
    is_limited = person.permissions is not None or person.projects is not None
    return is_limited and route[0] != "GET" and route[1].startswith("/me/")


# -- lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LISTS)
async def test_lists_show_what_the_caller_sees_and_no_more(world: World, path: str) -> None:
    failures = []
    for person in world.people:
        if not person.is_known:
            continue
        for query in ("", "?project=alpha", "?project=bravo", "?workflow=daily", "?limit=1"):
            if query.startswith(("?project", "?workflow")) and not _filters(world, path, query):
                continue
            shown = await _pages(world, person, path + query)
            for project in world.made:
                asked = query in ("", "?workflow=daily", "?limit=1") or project in query
                expected = person.sees(project) and asked
                if (project in shown) is not expected:
                    failures.append(f"{person.name} {path}{query} {project}: {shown[:300]}")
    assert not failures, "\n".join(failures[:20])


@pytest.mark.parametrize(("path", "each"), [("/instance-counts", 1), ("/task-instance-counts", 2)])
async def test_counts_count_what_the_caller_sees_and_no_more(
    world: World, path: str, each: int
) -> None:
    for person in world.people:
        if not person.is_known or person.must_change:
            continue
        for query in ("", "?project=bravo", "?workflow=daily", "?label=nobody"):
            answer = await world.send(person, Ask("GET", path + query))
            seen = [name for name in world.made if person.sees(name)]
            expected = [name for name in seen if "bravo" not in query or name == BRAVO]
            expected = [] if "label" in query else expected
            assert answer.json()["total"]["count"] == each * len(expected), (person.name, query)


def _filters(world: World, path: str, query: str) -> bool:
    name = query[1:].partition("=")[0]
    operation = dict(_operations(world))["GET", path]
    return any(one["name"] == name for one in operation.get("parameters", []))


async def _pages(world: World, person: Person, path: str) -> str:
    shown, cursor = "", None
    while True:
        where = path if cursor is None else f"{path}&cursor={cursor}"
        answer = await world.send(person, Ask("GET", where))
        if person.must_change:
            assert answer.status_code == 403, answer.text
            return ""
        assert answer.status_code == 200, answer.text
        shown += answer.text
        cursor = answer.json()["next"]
        if cursor is None or "?" not in path:
            return shown


# -- one id at a time -------------------------------------------------------------------------

_PLACES = {**dict(places_in_paths()), **PLACES}
DEFINITIONS = frozenset(f"{where} {kind}" for where in WAYS_IN for kind in REACHES)
ATTACKERS = ("owner-alpha", "robot", "browsing")


@pytest.mark.parametrize("where", [name for name in _PLACES if "follow" not in name])
async def test_id_of_another_project_is_answered_as_one_that_nothing_has(
    world: World, unchanged: Any, where: str
) -> None:
    place: Place = _PLACES[where]
    own, foreign = world.made[ALPHA], world.made[BRAVO][place.key]
    missing = MISSING_NAME if place.key == "project" else MISSING_ID
    for name in ATTACKERS:
        person = world.person(name)
        answer = await world.send(person, place.ask(own, foreign))
        # What a definition names needs the other project's grant.
        refusals = (403, 422) if where in DEFINITIONS else (403, 404)
        is_told = "/validate" in where and answer.json().get("valid") is False
        assert answer.status_code in refusals or is_told, f"{name}: {answer.text}"
        assert unchanged(), name
        other = await world.send(person, place.ask(own, missing))
        assert other.status_code == answer.status_code, f"{name}: {answer.text} {other.text}"
        shown = answer.text.replace(str(foreign), "<key>")
        assert shown == other.text.replace(str(missing), "<key>"), name
        assert "word-of-bravo" not in answer.text


async def test_bodies_say_which_project_they_are_about(world: World) -> None:
    """A request that leaves the project out is about the project ``default``."""
    for route in SUBJECT_IN_BODY:
        body = dict(ask(route, world.made[ALPHA]).body)
        del body["project"]
        answer = await world.send(world.person("owner-alpha"), Ask(*route, body))
        assert answer.status_code == 404, f"{route} {answer.text}"
        assert "there is no project default" in answer.text


async def test_credentials_of_others_are_as_good_as_missing(world: World, unchanged: Any) -> None:
    """Ids of tokens and sessions are within an account, and those within a project."""
    alpha, bravo, boss = world.made[ALPHA], world.made[BRAVO], world.person("boss")
    owner = world.person("owner-alpha")
    of_bot = "/projects/alpha/service-accounts/bot/tokens/"
    asked = [
        (owner, "/me/tokens/", alpha["users_token_id"]),
        (owner, "/me/sessions/", alpha["session_id"]),
        (boss, "/me/tokens/", alpha["token_id"]),
        (boss, "/me/sessions/", bravo["session_id"]),
        (boss, "/users/someone-of-alpha/tokens/", bravo["users_token_id"]),
        (boss, "/users/someone-of-alpha/tokens/", alpha["token_id"]),
        (owner, of_bot, bravo["token_id"]),
        (owner, of_bot, alpha["users_token_id"]),
        (boss, of_bot, bravo["token_id"]),
    ]
    for person, path, key in asked:
        answer = await world.send(person, Ask("DELETE", f"{path}{key}"))
        missing = await world.send(person, Ask("DELETE", f"{path}{MISSING_ID}"))
        assert answer.status_code == missing.status_code == 404, f"{path}: {answer.text}"
        shown = answer.text.replace(str(key), "<key>")
        assert shown == missing.text.replace(str(MISSING_ID), "<key>")
    assert unchanged()
    await _not_looked_at_for_long(world)


async def _not_looked_at_for_long(world: World) -> None:
    """What is remembered of rights is no reason for the answers above."""
    assert LOOK_S < 1
    world.api.services.access.identities.changed()
    fresh = replace(world.person("owner-alpha"))
    assert (await world.send(fresh, Ask("GET", "/projects/alpha"))).status_code == 200


# -- what is more than a refusal --------------------------------------------------------------


async def test_backfill_that_reaches_another_project_needs_that_one_too(world: World) -> None:
    """Bravo waits for alpha, so a backfill of alpha may run bravo as well."""
    owner, both = world.person("owner-alpha"), world.person("boss")
    tasks = [
        {
            "name": "wait",
            "type": "DEPENDENT",
            "params": {"when": {"project": ALPHA, "workflow": "daily", "date": "today"}},
        }
    ]
    grant = Ask("PUT", f"/projects/{ALPHA}/grants/{BRAVO}", {"what": "see"})
    assert (await world.send(both, grant)).status_code == 201
    path = f"/projects/{BRAVO}/workflows/behind"
    answer = await world.send(both, Ask("PUT", path, {"tasks": tasks}))
    assert answer.status_code == 201, answer.text
    body = {**ask(("POST", "/backfills"), world.made[ALPHA]).body, "downstream": "all"}
    for dry_run in ("true", "false"):
        refused = await world.send(owner, Ask("POST", f"/backfills?dry_run={dry_run}", body))
        assert refused.status_code == 403, refused.text
        assert BRAVO not in refused.text
    accepted = await world.send(both, Ask("POST", "/backfills", body))
    backfill_id = await carried_out(world.api, accepted.json()["command"]["id"])
    for request in ("pause", "cancel", "retry"):
        refused = await world.send(owner, Ask("POST", f"/backfills/{backfill_id}/{request}"))
        assert refused.status_code == 403, refused.text
        assert BRAVO not in refused.text
    runs = Ask("GET", f"/backfills/{backfill_id}/runs")
    assert BRAVO in (await world.send(both, runs)).text
    shown = await world.send(owner, runs)
    assert {one["project"] for one in shown.json()["items"]} == {ALPHA}
    paused = await world.send(both, Ask("POST", f"/backfills/{backfill_id}/pause"))
    assert paused.status_code == 202


async def test_streams_carry_what_the_caller_sees_and_no_more(world: World) -> None:
    for person in world.people:
        if person.is_known:
            shown = await _streamed(world, person)
            for project in world.made:
                assert (f'"project": "{project}"' in shown) is person.sees(project), person.name


async def _streamed(world: World, person: Person) -> str:
    """Return all that has happened, as a stream tells it."""
    found = bytearray()
    is_quiet = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if found:
            await is_quiet.wait()
            return {"type": "http.disconnect"}
        found.extend(b"\n")
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        found.extend(message.get("body", b""))
        if message["type"] == "http.response.start":
            assert message["status"] == 200
        if b": still here" in found:
            is_quiet.set()

    headers = {"host": "localhost", "last-event-id": "0", **person.headers}
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"{PREFIX}/events",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    async with asyncio.timeout(DEADLINE_S):
        await world.app(scope, receive, send)
    return found.decode()
