"""Signing in with a one-time code: once, soon, here, and not by somebody else's page."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import pytest_asyncio

from shoal.api.access.one_time import CODE_LIFE_S, MOST_CODES, OneTimeCodes, SealedSessions
from shoal.api.access.sessions import COOKIE
from shoal.api.app import create_app
from shoal.api.services import Services
from shoal.api.settings import ApiSettings
from shoal.core.access.principals import EVERYTHING
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.access.people import account, bearer, token
from tests.integration.api.conftest import PREFIX, opened, problem_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

OURS = {"Sec-Fetch-Site": "same-origin"}
ELSEWHERE = "192.0.2.7"


@dataclass
class World:
    """An API that can be asked from several addresses."""

    services: Services

    async def post(
        self, path: str, body: object = None, address: str = "127.0.0.1", **headers: str
    ) -> httpx.Response:
        transport = httpx.ASGITransport(create_app(self.services), client=(address, 4711))
        async with httpx.AsyncClient(transport=transport, base_url="https://localhost") as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.post(PREFIX + path, json=body, headers=named)

    async def me(self, cookie: str) -> httpx.Response:
        transport = httpx.ASGITransport(create_app(self.services))
        async with httpx.AsyncClient(transport=transport, base_url="https://localhost") as client:
            return await client.get(f"{PREFIX}/me", headers={"Cookie": f"{COOKIE}={cookie}"})

    async def code(self) -> str:
        answer = await self.post("/sign-in-codes", **bearer(self.services.token))
        assert answer.status_code == 201, answer.text
        assert answer.headers["cache-control"] == "no-store"
        code: str = answer.json()["code"]
        return code

    async def redeem(self, code: str, **more: str) -> httpx.Response:
        return await self.post("/login/one-time", {"code": code}, **{**OURS, **more})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(module_cluster: ClusterSettings) -> AsyncIterator[World]:
    """One API for all tests."""
    async with opened(module_cluster, ApiSettings(port=0)) as services:
        yield World(services)


async def test_code_signs_in_once_as_the_administrator_of_the_data_folder(world: World) -> None:
    code = await world.code()
    answer = await world.redeem(code)
    assert answer.status_code == 204, answer.text
    flags = answer.headers["set-cookie"].lower()
    for flag in ("__host-", "httponly", "secure", "samesite=strict", "path=/"):
        assert flag in flags
    me = (await world.me(answer.cookies[COOKIE])).json()
    assert me["kind"] == "BREAK_GLASS"
    assert me["is_admin"]
    problem_of(await world.redeem(code), 401, "unauthorized")


async def test_sign_out_ends_the_session(world: World) -> None:
    cookie = (await world.redeem(await world.code())).cookies[COOKIE]
    headers = {**OURS, "Cookie": f"{COOKIE}={cookie}"}
    assert (await world.post("/logout", **headers)).status_code == 204
    assert (await world.me(cookie)).status_code == 401


async def test_code_is_for_this_machine_and_for_our_pages(world: World) -> None:
    code = await world.code()
    problem_of(await world.redeem(code, address=ELSEWHERE), 403, "cross-site")
    problem_of(await world.redeem(code, Sec_Fetch_Site="cross-site"), 403, "cross-site")
    problem_of(await world.redeem(code, Sec_Fetch_Site="same-site"), 403, "cross-site")
    asked = await world.post("/sign-in-codes", address=ELSEWHERE, **bearer(world.services.token))
    problem_of(asked, 403, "cross-site")
    assert (await world.redeem(code)).status_code == 204, "refused, it was not used up"


async def test_only_the_token_of_the_data_folder_makes_codes(world: World) -> None:
    async with world.services.store.unit_of_work() as uow:
        now = world.services.store.clock()
        admin = await account(uow, "chief", now, is_admin=True)
        _, text = await token(uow, admin, now, EVERYTHING)
        await uow.commit()
    problem_of(await world.post("/sign-in-codes", **bearer(text)), 403, "forbidden")
    cookie = (await world.redeem(await world.code())).cookies[COOKIE]
    again = await world.post("/sign-in-codes", **{**OURS, "Cookie": f"{COOKIE}={cookie}"})
    problem_of(again, 403, "forbidden")


async def test_code_is_good_for_a_minute() -> None:
    now = [100.0]
    codes = OneTimeCodes(lambda: now[0])
    early, late = codes.make(), codes.make()
    now[0] += CODE_LIFE_S - 1
    assert codes.redeem(early)
    now[0] += 1
    assert not codes.redeem(late)


async def test_oldest_of_many_codes_gives_way() -> None:
    codes = OneTimeCodes()
    made = [codes.make() for _ in range(MOST_CODES + 1)]
    assert not codes.redeem(made[0])
    assert all(codes.redeem(code) for code in made[1:])


async def test_sealed_session_ends_with_its_time_and_with_the_token() -> None:
    now = [datetime(2026, 11, 21, tzinfo=UTC)]
    sessions = SealedSessions("a token of the data folder", lambda: now[0])
    text = sessions.make(timedelta(hours=1))
    again = SealedSessions("a token of the data folder", lambda: now[0])
    assert again.until(text) is not None, "an API that was started again knows it"
    assert SealedSessions("another token of the folder", lambda: now[0]).until(text) is None
    now[0] += timedelta(hours=1)
    assert again.until(text) is None


@pytest.mark.parametrize("place", range(4))
async def test_changed_cookie_is_worth_nothing(place: int) -> None:
    sessions = SealedSessions("a token of the data folder", lambda: datetime.now(UTC))
    parts = sessions.make(timedelta(hours=1)).split(".")
    parts[place] = parts[place][:-1] + ("1" if parts[place][-1] != "1" else "2")
    assert sessions.until(".".join(parts)) is None
    assert sessions.until(f"local.{'9' * 12}.x.é") is None
