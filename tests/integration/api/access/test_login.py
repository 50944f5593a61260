"""Signing in and out: sessions, cookies, passwords, requests from other sites."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
import structlog

from shoal.api.access import passwords
from shoal.api.access.failed_logins import FailedLogins
from shoal.api.access.first_admin import NAME, make_first_admin
from shoal.api.access.sessions import COOKIE
from shoal.api.settings import ApiSettings
from shoal.core.access.principals import PrincipalKind
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.access.people import account, bearer, browser
from tests.integration.api.conftest import PREFIX, Api, in_process, opened, problem_of
from tests.support.waiting import DEADLINE_S, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

PASSWORD = "seven wild geese fly"
ANOTHER = "eight tame geese walk"
OURS = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class World:
    """An API, and how to ask it as a browser or a program with nothing but what a test gives."""

    api: Api
    file: str

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """Send a request with these headers alone."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.client() as client:
            return await client.request(method, PREFIX + path, json=body, headers=named)

    def client(self) -> httpx.AsyncClient:
        """Return a client that sends nothing by itself."""
        transport = self.api.client._transport
        return httpx.AsyncClient(transport=transport, base_url="https://localhost")

    async def login(self, name: str, password: str = PASSWORD, **headers: str) -> httpx.Response:
        """Sign in."""
        return await self.ask("POST", "/login", {"name": name, "password": password}, **headers)

    async def user(self, name: str, **more: Any) -> None:
        """Store a user who has the password."""
        hashed = await self.api.services.access.passwords.hash(PASSWORD)
        async with self.api.services.store.unit_of_work() as uow:
            await account(uow, name, self.api.services.store.clock(), password=hashed, **more)
            await uow.commit()

    async def signed_in(self, name: str) -> dict[str, str]:
        """Sign in; return the headers of pages of ours in that browser."""
        answer = await self.login(name)
        assert answer.status_code == 204, answer.text
        return browser(answer.cookies[COOKIE])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(module_cluster: ClusterSettings) -> AsyncIterator[World]:
    """One API for all tests; each has users of its own."""
    file = module_cluster.database.removeprefix("sqlite:///")
    async with opened(module_cluster, ApiSettings(port=0)) as services, in_process(services) as api:
        yield World(api, file)


@pytest.fixture(autouse=True)
def patient(world: World) -> None:
    """Wrong passwords of one test are none of the next."""
    object.__setattr__(world.api.services.access, "failed_logins", FailedLogins())


async def test_cookie_is_for_pages_of_this_api_alone(world: World) -> None:
    await world.user("ada")
    answer = await world.login("ada")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-shoal=")
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "secure", "samesite=strict", "path=/"} <= parts
    assert not any(part.startswith("domain") for part in parts)
    assert answer.headers["cache-control"] == "no-store"


async def test_login_never_keeps_a_session_that_was_there(world: World) -> None:
    await world.user("fixed")
    planted = "a" * 43
    answer = await world.login("fixed", Cookie=f"{COOKIE}={planted}", **_plain(OURS))
    first = answer.cookies[COOKIE]
    again = await world.login("fixed", Cookie=f"{COOKIE}={first}", **_plain(OURS))
    assert len({planted, first, again.cookies[COOKIE]}) == 3
    assert (await world.ask("GET", "/me", **_plain(browser(planted)))).status_code == 401


def _plain(headers: Any) -> dict[str, str]:
    return {name.replace("-", "_"): value for name, value in headers.items()}


async def test_unknown_name_wrong_password_and_disabled_account_read_the_same(
    world: World,
) -> None:
    await world.user("known")
    await world.user("off")
    async with world.api.services.store.unit_of_work() as uow:
        off = await uow.principals.get("off")
        await uow.principals.disable(off.id, world.api.services.store.clock())
        await account(uow, "by-provider", world.api.services.store.clock())  # no password
        await uow.commit()
    answers = [
        await world.login("known", "wrong"),
        await world.login("unknown", "wrong"),
        await world.login("off"),
        await world.login("by-provider", "wrong"),
    ]
    assert {answer.status_code for answer in answers} == {401}
    told = [answer.json() | {"request_id": "", "instance": ""} for answer in answers]
    assert all(one == told[0] for one in told)
    assert not any("set-cookie" in answer.headers for answer in answers)


async def test_wrong_passwords_slow_down_one_name_and_no_other(world: World) -> None:
    await world.user("guessed")
    await world.user("neighbour")
    statuses = [(await world.login("guessed", "wrong")).status_code for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    refused = await world.login("GUESSED")  # the right one, and another way to write the name
    problem_of(refused, 429, "too-many-requests")
    assert int(refused.headers["Retry-After"]) >= 1
    assert (await world.login("neighbour")).status_code == 204


async def test_many_wrong_passwords_at_once_count(world: World) -> None:
    await world.user("flooded")
    answers = await asyncio.gather(*(world.login("flooded", "wrong") for _ in range(30)))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(401) == FailedLogins.FREE_OF_PAIR
    assert statuses.count(429) == 30 - FailedLogins.FREE_OF_PAIR


async def test_flood_of_wrong_passwords_holds_up_no_other_request(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lenient(FailedLogins):
        FREE_OF_PAIR = FREE_OF_ADDRESS = 1_000

    verify, may_go_on, niceness = passwords._verify, threading.Event(), set()

    def slowly(hashed: str, password: str) -> bool:
        niceness.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        assert may_go_on.wait(DEADLINE_S)
        return verify(hashed, password)

    monkeypatch.setattr(passwords, "_verify", slowly)
    monkeypatch.setitem(vars(world.api.services.access), "failed_logins", Lenient())
    flood = asyncio.gather(*(world.login(f"nobody{n}", "wrong") for n in range(100)))
    await eventually(lambda: niceness)
    for _ in range(20):
        assert (await world.api.client.get(f"{PREFIX}/me")).status_code == 200
    assert not flood.done()
    may_go_on.set()
    statuses = [answer.status_code for answer in await flood]
    assert set(statuses) == {401, 429}  # more than can wait are refused
    own = os.getpriority(os.PRIO_PROCESS, 0)  # 19 is as low as it gets
    assert min(niceness) > own or own == passwords._NICEST  # hashing gives way


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://localhost"}, False),
        ({"Origin": "https://localhost"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "https://localhost.evil.example"}, False),
        ({"Origin": "https://localhost:81"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({}, False),
    ],
)
async def test_sessions_change_things_from_pages_of_ours_alone(
    world: World, headers: dict[str, str], is_ours: bool
) -> None:
    name = f"pages{abs(hash(str(headers)))}"
    await world.user(name)
    cookie = {"Cookie": (await world.signed_in(name))["Cookie"]}
    answer = await world.ask(
        "POST", "/me/tokens", {"name": "t", "days": 1}, **_plain({**cookie, **headers})
    )
    assert answer.status_code == (201 if is_ours else 403), answer.text
    if not is_ours:
        problem_of(answer, 403, "cross-site")
    assert (await world.ask("GET", "/me", **_plain({**cookie, **headers}))).status_code == 200
    login = await world.login(name, **_plain(headers))
    assert login.status_code == (204 if is_ours or not headers else 403)
    assert "access-control-allow-origin" not in answer.headers


async def test_programs_with_tokens_are_asked_for_no_origin(world: World) -> None:
    answer = await world.ask(
        "PUT",
        "/projects/made",
        {"description": ""},
        **_plain({**bearer(world.api.services.token), "Sec-Fetch-Site": "cross-site"}),
    )
    assert answer.status_code == 201, answer.text


async def test_logout_ends_the_session_and_no_other(world: World) -> None:
    await world.user("leaving")
    one, other = await world.signed_in("leaving"), await world.signed_in("leaving")
    answer = await world.ask("POST", "/logout", **_plain(one))
    assert answer.status_code == 204
    assert "max-age=0" in answer.headers["set-cookie"].lower()
    assert (await world.ask("GET", "/me", **_plain(one))).status_code == 401
    assert (await world.ask("GET", "/me", **_plain(other))).status_code == 200


async def test_another_password_ends_the_other_sessions_and_the_tokens(world: World) -> None:
    await world.user("changing")
    one, other = await world.signed_in("changing"), await world.signed_in("changing")
    made = await world.ask("POST", "/me/tokens", {"name": "t", "days": 1}, **_plain(one))
    text = bearer(made.json()["token"])
    body = {"current": PASSWORD, "new": ANOTHER}
    wrong = await world.ask("PUT", "/me/password", {**body, "current": "x"}, **_plain(one))
    assert wrong.status_code == 422
    assert (await world.ask("GET", "/me", **_plain(other))).status_code == 200
    assert (await world.ask("PUT", "/me/password", body, **_plain(one))).status_code == 204
    assert (await world.ask("GET", "/me", **_plain(one))).status_code == 200
    assert (await world.ask("GET", "/me", **_plain(other))).status_code == 401
    assert (await world.ask("GET", "/me", **_plain(text))).status_code == 401
    assert (await world.login("changing")).status_code == 401
    assert (await world.login("changing", ANOTHER)).status_code == 204


async def test_who_has_to_change_the_password_can_do_that_and_nothing_else(world: World) -> None:
    await world.user("new", must_change=True, is_admin=True)
    one = await world.signed_in("new")
    for method, path, body in (
        ("GET", "/users", None),
        ("GET", "/projects", None),
        ("POST", "/me/tokens", {"name": "t", "days": 1}),
        ("PUT", "/projects/mine", {"description": ""}),
    ):
        answer = await world.ask(method, path, body, **_plain(one))
        assert answer.status_code == 403, (path, answer.text)
    body = {"current": PASSWORD, "new": ANOTHER}
    assert (await world.ask("PUT", "/me/password", body, **_plain(one))).status_code == 204
    assert (await world.ask("GET", "/users", **_plain(one))).status_code == 200


async def test_token_makes_no_token(world: World) -> None:
    await world.user("scripted")
    one = await world.signed_in("scripted")
    made = await world.ask("POST", "/me/tokens", {"name": "t", "days": 1}, **_plain(one))
    again = await world.ask(
        "POST", "/me/tokens", {"name": "u"}, **_plain(bearer(made.json()["token"]))
    )
    assert again.status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/me/tokens", {"name": "t", "principal_id": 1}),
        ("POST", "/me/tokens", {"name": "t", "owner": "admin"}),
        ("POST", "/me/tokens", {"name": "t", "token": "shoal_pat_x"}),
        ("PUT", "/me/password", {"current": PASSWORD, "new": ANOTHER, "is_admin": True}),
        ("PUT", "/me/password", {"current": PASSWORD, "new": ANOTHER, "name": "admin"}),
        ("POST", "/login", {"name": "plain", "password": PASSWORD, "is_admin": True}),
    ],
)
async def test_fields_that_are_nobodys_to_set_are_refused(
    world: World, method: str, path: str, body: dict[str, Any]
) -> None:
    async with world.api.services.store.unit_of_work(read_only=True) as uow:
        known = await uow.principals.password("plain")
    if known is None:
        await world.user("plain")
    one = await world.signed_in("plain")
    answer = await world.ask(method, path, body, **_plain(one))
    assert answer.status_code == 422, answer.text


async def test_public_route_reads_little_of_a_body(world: World) -> None:
    answer = await world.ask("POST", "/login", {"name": "a", "password": "x" * 20_000})
    problem_of(answer, 413, "body-too-large")


async def test_last_administrator_stays(world: World) -> None:
    await world.user("last", is_admin=True)
    async with world.api.services.store.unit_of_work() as uow:
        for one in await uow.principals.list(PrincipalKind.USER, limit=100):
            if one.is_admin and one.name != "last":
                await uow.principals.set_admin(one.id, False)
        await uow.commit()
    for body in ({"is_admin": False}, {"disabled": True}):
        answer = await world.api.client.patch(f"{PREFIX}/users/last", json=body)
        problem_of(answer, 409, "last-administrator")
    assert (await world.api.client.get(f"{PREFIX}/users/last")).json()["is_admin"]


FUZZED = [
    "/projects%2f",
    "//projects",
    "/projects;x",
    "/projects/..;/me",
    "/PROJECTS",
    "/projects/%2e%2e/health/live",
    "/health/live/../../projects",
    "/health/live/projects",
    "/login/../projects",
    "/health/live;/projects",
    "/users%00/health/live",
    "/users?x=/health/live",
    "/users/health/live",
    "/cluster/configs",
    "/cluster%2Fhealth%2Flive",
    "/stores#/health/live",
]


@pytest.mark.parametrize("path", FUZZED)
async def test_no_way_to_write_a_path_needs_no_caller(world: World, path: str) -> None:
    for headers in (
        {},
        {"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1"},
        {"X-Forwarded-Prefix": "/api/v1/health/live", "X-Original-Url": "/api/v1/health/live"},
        {"X-Rewrite-Url": "/api/v1/health/live", "X-Forwarded-User": "admin"},
        {"X-Http-Method-Override": "GET", "Forwarded": "for=127.0.0.1"},
    ):
        async with world.client() as client:
            for method in ("GET", "POST", "DELETE", "HEAD", "OPTIONS"):
                answer = await client.request(method, PREFIX + path, headers=headers)
                is_live = str(answer.request.url.path).endswith("/health/live")
                if is_live and "projects" not in str(answer.request.url):
                    continue
                assert answer.status_code in (401, 404, 405), (method, headers, answer.text)


async def test_two_processes_that_start_make_one_first_administrator(world: World) -> None:
    store, passwords = world.api.services.store, world.api.services.access.passwords
    parts = (store.database, passwords, store.clock)
    with closing(sqlite3.connect(world.file)) as database:
        for table in ("login_session", "api_token", "group_member", "project_role", "principal"):
            database.execute(f"DELETE FROM {table}")
        database.commit()
    with structlog.testing.capture_logs() as logged:
        made = await asyncio.gather(*(make_first_admin(*parts) for _ in range(3)))
    [password] = [one for one in made if one is not None]
    assert password not in str(logged)
    answer = await world.login(NAME, password)
    assert answer.status_code == 204
    me = (await world.ask("GET", "/me", **_plain(browser(answer.cookies[COOKIE])))).json()
    assert me["must_change_password"]
    assert await make_first_admin(*parts) is None
