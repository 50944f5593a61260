"""Signing in at an OpenID provider, also at one that does what it must not, and as an attacker."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import pytest_asyncio
import structlog
from joserfc.jwk import ECKey

from shoal.api.access.failed_logins import FailedLogins
from shoal.api.access.sessions import COOKIE as SESSION
from shoal.api.federation import provider as provider_module
from shoal.api.federation.flow import COOKIE, from_cookie, to_cookie
from shoal.api.settings import ApiSettings
from shoal.core.access.pkce import challenge_of, number_of
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.access.people import account, browser
from tests.integration.api.conftest import PREFIX, Api, in_process, opened, problem_of
from tests.support.servers.openid_provider import (
    CLIENT,
    DISCOVERY,
    SECRET,
    OpenIdProvider,
    callback,
    openid_provider,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

BEGIN = f"{PREFIX}/login/oidc/main"
END = f"{BEGIN}/callback"


@dataclass
class World:
    """An API with a provider; ``browser`` makes browsers, which keep their cookies."""

    api: Api
    provider: OpenIdProvider

    def browser(self) -> httpx.AsyncClient:
        """Return a browser that was never here."""
        transport = self.api.client._transport
        return httpx.AsyncClient(transport=transport, base_url="https://localhost")

    async def led(self, client: httpx.AsyncClient, **query: Any) -> str:
        """Begin; return where the browser is led."""
        found = await client.get(BEGIN, params=query)
        assert found.status_code == 303, found.text
        return found.headers["location"]

    async def sign_in(
        self, subject: str, client: httpx.AsyncClient | None = None, **claims: Any
    ) -> httpx.Response:
        """Go all the way; return the answer at its end."""
        client = client or self.browser()
        found = self.provider.sign_in(await self.led(client), subject, **claims)
        return await client.get(callback(END, found))

    async def me(self, answer: httpx.Response) -> Any:
        """Return who the session of an answer is."""
        async with self.browser() as client:
            found = await client.get(f"{PREFIX}/me", headers=browser(answer.cookies[SESSION]))
        assert found.status_code == 200, found.text
        return found.json()

    async def groups(self, name: str) -> list[str]:
        """Return the groups of a user."""
        found = await self.api.client.get(f"{PREFIX}/groups")
        return [one["name"] for one in found.json()["items"] if name in one["members"]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    module_cluster: ClusterSettings, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    """An API and a provider for all tests; each has people of its own."""
    secret = tmp_path_factory.mktemp("oidc") / "secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    async with openid_provider() as provider:
        settings = settings_of(provider, client_secret_file=secret)
        async with opened(module_cluster, settings) as services, in_process(services) as api:
            for name in ("analysts", "operators", "by-hand"):
                await api.client.post(f"{PREFIX}/groups", json={"name": name})
            yield World(api, provider)


def settings_of(provider: OpenIdProvider, **changes: Any) -> ApiSettings:
    """Settings of an API that makes accounts for people of a provider."""
    main = {
        "issuer": provider.issuer,
        "client_id": CLIENT,
        "make_accounts": True,
        "groups_claim": "groups",
        "groups": {"data": "analysts", "ops": "operators", "lost": "no-such-group"},
        "timeout_s": 60,
        **changes,
    }
    return ApiSettings.model_validate(
        {"port": 0, "public_url": "https://localhost", "oidc": {"main": main}}
    )


@pytest.fixture(autouse=True)
def fresh(world: World) -> None:
    """Wrong attempts and mischief of one test are none of the next; nothing is remembered."""
    object.__setattr__(world.api.services.access, "failed_logins", FailedLogins())
    provider = world.provider
    provider.metadata, provider.claims, provider.sign, provider.keys = {}, {}, None, []
    provider.takes_codes_again, provider.checks_pkce = False, True
    used = world.api.services.federation.providers["main"]
    used._metadata, used._keys, used._keys_again_s = None, None, 0.0
    used._down_until_s = 0.0


# -- the way ------------------------------------------------------------------------------------


async def test_person_gets_an_account_with_a_session_and_groups(world: World) -> None:
    answer = await world.sign_in(
        "sub-1", preferred_username="ada", name="Ada\u2028Lovelace", groups=["data", "lost", "x"]
    )
    assert answer.status_code == 200, answer.text
    assert 'content="0;url=/docs"' in answer.text
    me = await world.me(answer)
    assert (me["name"], me["has_password"], me["issuer"]) == ("ada", False, world.provider.issuer)
    user = (await world.api.client.get(f"{PREFIX}/users/ada")).json()
    assert (user["full_name"], user["subject"]) == ("Ada Lovelace", "sub-1")
    assert await world.groups("ada") == ["analysts"]


async def test_audit_says_who_signed_in_where_and_whose_account_was_made(world: World) -> None:
    answer = await world.sign_in("sub-audited", preferred_username="audited")
    assert answer.status_code == 200, answer.text
    client = world.browser()
    refused = await client.get(callback(END, {"state": "0" * 16, "code": "stolen"}))
    assert refused.status_code == 400
    await world.api.services.access.auditor.settle()
    found = (await world.api.client.get(f"{PREFIX}/audit?limit=500")).json()["items"]
    of_ada = {one["action"]: one for one in found if one["principal"] == "audited"}
    assert of_ada["user.add"]["detail"] == {"issuer": world.provider.issuer}
    assert of_ada["session.begin"]["detail"] == {"way": world.provider.issuer}
    assert of_ada["session.begin"]["outcome"] == "done"
    assert any(
        one["action"] == "session.begin" and one["outcome"] == "refused" and not one["principal"]
        for one in found
    )


async def test_cookies_are_for_this_browser_and_this_api_alone(world: World) -> None:
    client = world.browser()
    begun = await client.get(BEGIN)
    kept = begun.headers["set-cookie"]
    assert kept.startswith("__Host-shoal-sign-in=")
    parts = {part.strip().lower() for part in kept.split(";")[1:]}
    assert {"httponly", "secure", "samesite=lax", "path=/", "max-age=600"} <= parts
    ended = await client.get(
        callback(
            END, world.provider.sign_in(begun.headers["location"], "sub-c", preferred_username="cy")
        )
    )
    session, gone = sorted(ended.headers.get_list("set-cookie"))[::-1]
    assert "max-age=0" in gone.lower() or "max-age=0" in session.lower()
    assert any("samesite=strict" in one.lower() for one in (session, gone))


async def test_ways_of_signing_in_are_listed_without_asking_anybody(world: World) -> None:
    before = len(world.provider.server.received)
    async with world.browser() as client:
        found = (await client.get(f"{PREFIX}/login")).json()["items"]
    assert [(one["kind"], one["name"], one["path"]) for one in found] == [
        ("password", "password", f"{PREFIX}/login"),
        ("oidc", "main", BEGIN),
    ]
    assert len(world.provider.server.received) == before
    assert SECRET not in str(found)


async def test_groups_are_those_of_the_latest_sign_in_and_those_by_hand_stay(world: World) -> None:
    name: dict[str, Any] = {"preferred_username": "gus"}
    await world.sign_in("sub-g", **name, groups=["data", "ops"])
    put = await world.api.client.put(f"{PREFIX}/groups/by-hand/members/gus")
    assert put.status_code == 201
    assert await world.groups("gus") == ["analysts", "by-hand", "operators"]
    await world.sign_in("sub-g", **name, groups=["ops"])
    assert await world.groups("gus") == ["by-hand", "operators"]
    for nothing in (None, "ops", {"ops": True}):  # left out, or no list
        await world.sign_in("sub-g", **name, groups=["ops"])
        world.provider.claims = {"groups": nothing}
        await world.sign_in("sub-g", **name)
        world.provider.claims = {}
        assert await world.groups("gus") == ["by-hand"]


async def test_subject_is_the_key_and_a_name_is_nothing(world: World) -> None:
    await world.sign_in("sub-k", preferred_username="kim")
    renamed = await world.sign_in("sub-k", preferred_username="admin", email="root@example.org")
    assert (await world.me(renamed))["name"] == "kim"
    stolen = await world.sign_in("sub-other", preferred_username="KIM")
    problem_of_page(stolen, 409, "name-taken")
    assert SESSION not in stolen.cookies


async def test_account_that_exists_is_never_taken_over_and_can_be_linked(world: World) -> None:
    async with world.api.services.store.unit_of_work() as uow:
        await account(
            uow, "boss", world.api.services.store.clock(), is_admin=True, must_change=True
        )
        await account(uow, "else", world.api.services.store.clock())
        await uow.commit()
    taken = await world.sign_in("sub-b", preferred_username="boss")
    problem_of_page(taken, 409, "name-taken")
    assert "shoal user link" in taken.json()["detail"]
    body = {"issuer": world.provider.issuer, "subject": "sub-b"}
    client, path = world.api.client, f"{PREFIX}/users/boss/identity"
    unknown = await client.put(path, json={**body, "issuer": "https://evil.example"})
    assert unknown.status_code == 422
    assert (await client.put(path, json=body)).status_code == 200
    problem_of(await client.put(f"{PREFIX}/users/else/identity", json=body), 409, "identity-taken")
    problem_of(await client.put(path, json={**body, "subject": "s"}), 409, "identity-taken")
    first = await world.sign_in("sub-b", preferred_username="whatever")
    me = await world.me(first)
    assert (me["name"], me["is_admin"], me["must_change_password"]) == ("boss", True, False)
    assert (await client.delete(path)).status_code == 204
    async with world.browser() as other:
        gone = await other.get(f"{PREFIX}/me", headers=browser(first.cookies[SESSION]))
    assert gone.status_code == 401
    problem_of(await client.delete(path), 404, "not-found")
    problem_of_page(await world.sign_in("sub-b", preferred_username="boss"), 409, "name-taken")


@pytest.mark.parametrize("name", ["break-glass", "SCHEDULE", "a b", "../x", "", None, 7, "x" * 101])
async def test_name_that_no_account_may_have_makes_none(world: World, name: Any) -> None:
    answer = await world.sign_in("sub-bad-name", preferred_username=name)
    assert answer.status_code in (403, 409), answer.text
    assert SESSION not in answer.cookies


async def test_disabled_account_stays_out(world: World) -> None:
    first = await world.sign_in("sub-d", preferred_username="dan")
    await world.api.client.patch(f"{PREFIX}/users/dan", json={"disabled": True})
    async with world.browser() as client:
        gone = await client.get(f"{PREFIX}/me", headers=browser(first.cookies[SESSION]))
    assert gone.status_code == 401
    again = await world.sign_in("sub-d", preferred_username="dan")
    problem_of_page(again, 401, "unauthorized")


async def test_account_without_a_password_says_so(world: World) -> None:
    answer = await world.sign_in("sub-p", preferred_username="pat")
    async with world.browser() as client:
        found = await client.put(
            f"{PREFIX}/me/password",
            json={"current": "anything", "new": "much better words"},
            headers=browser(answer.cookies[SESSION]),
        )
        problem_of(found, 403, "forbidden")
        assert world.provider.issuer in found.json()["detail"]
        body = {"name": "pat", "password": "anything"}
        problem_of(await client.post(f"{PREFIX}/login", json=body), 401, "unauthorized")


async def test_session_is_always_a_new_one(world: World) -> None:
    client = world.browser()
    client.cookies.set(SESSION, "a" * 43)
    first = await world.sign_in("sub-f", client, preferred_username="fay")
    again = await world.sign_in("sub-f", client, preferred_username="fay")
    assert len({"a" * 43, first.cookies[SESSION], again.cookies[SESSION]}) == 3


async def test_sign_out_leads_to_the_provider(world: World) -> None:
    async with world.browser() as client:
        found = await client.get(f"{BEGIN}/logout")
        assert found.status_code == 303
        parts = urlsplit(found.headers["location"])
        assert parts.path == "/logout"
        assert parse_qs(parts.query)["post_logout_redirect_uri"] == ["https://localhost"]


def problem_of_page(answer: httpx.Response, status: int, slug: str) -> None:
    """Check that a sign-in ended so, and that the browser has forgotten it."""
    assert answer.status_code == status, answer.text
    assert answer.json()["type"] == f"/problems/{slug}"
    assert COOKIE in answer.headers["set-cookie"]
    assert "max-age=0" in answer.headers["set-cookie"].lower()


# -- attacks ------------------------------------------------------------------------------------


async def test_answer_is_worth_nothing_in_another_browser(world: World) -> None:
    """Else somebody could sign others in as himself, and look at what they do then."""
    world.provider.checks_pkce = False
    for state in ("", "x" * 43):
        client = world.browser()
        found = world.provider.sign_in(await world.led(client), "sub-x", preferred_username="eve")
        answer = await client.get(callback(END, {**found, "state": state}))
        problem_of_page(answer, 400, "sign-in-failed")
    attacker, victim = world.browser(), world.browser()
    found = world.provider.sign_in(await world.led(attacker), "sub-x", preferred_username="eve")
    problem_of_page(await victim.get(callback(END, found)), 400, "sign-in-failed")
    await world.led(victim)  # has begun one of its own
    problem_of_page(await victim.get(callback(END, found)), 400, "sign-in-failed")


async def test_sign_in_ends_once_even_if_the_provider_takes_codes_again(world: World) -> None:
    world.provider.takes_codes_again = True
    client = world.browser()
    found = world.provider.sign_in(await world.led(client), "sub-r", preferred_username="rae")
    kept = client.cookies[COOKIE]
    assert (await client.get(callback(END, found))).status_code == 200
    client.cookies.set(COOKIE, kept, domain="localhost.local")
    again = await client.get(callback(END, found), headers={"Cookie": f"{COOKIE}={kept}"})
    problem_of_page(again, 400, "sign-in-failed")
    assert SESSION not in again.cookies


async def test_sign_in_that_takes_too_long_is_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = world.browser()
    found = world.provider.sign_in(await world.led(client), "sub-l", preferred_username="lee")
    flow = from_cookie(client.cookies[COOKIE], time.time())
    assert flow is not None
    assert from_cookie(client.cookies[COOKIE], flow.expires_s) is None
    late = to_cookie(flow.__class__(flow.secret, "main", "/docs", int(time.time()) - 1))
    answer = await world.browser().get(callback(END, found), headers={"Cookie": f"{COOKIE}={late}"})
    problem_of_page(answer, 400, "sign-in-failed")


async def test_code_of_another_sign_in_is_refused(world: World) -> None:
    """The provider would take it: the nonce tells that the ID token was made for another one."""
    world.provider.checks_pkce = False
    one, other = world.browser(), world.browser()
    stolen = world.provider.sign_in(await world.led(one), "sub-v", preferred_username="vic")
    own = world.provider.sign_in(await world.led(other), "sub-m", preferred_username="mal")
    answer = await other.get(callback(END, {**own, "code": stolen["code"]}))
    problem_of_page(answer, 503, "issuer-unavailable")


async def test_code_comes_with_the_verifier_of_its_challenge(world: World) -> None:
    one, other = world.browser(), world.browser()
    stolen = world.provider.sign_in(await world.led(one), "sub-v", preferred_username="vic")
    own = world.provider.sign_in(await world.led(other), "sub-m", preferred_username="mal")
    answer = await other.get(callback(END, {**own, "code": stolen["code"]}))
    problem_of_page(answer, 400, "sign-in-failed")


NOW = int(time.time())
TWISTED: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": None},
    "another audience": {"aud": "other"},
    "another audience by our azp": {"aud": "other", "azp": CLIENT},
    "no audience": {"aud": None},
    "several audiences without azp": {"aud": [CLIENT, "other"]},
    "made for another party": {"aud": [CLIENT, "other"], "azp": "other"},
    "another party alone": {"azp": "other"},
    "expired": {"exp": NOW - 3600},
    "no end": {"exp": None},
    "an end that is none": {"exp": "never"},
    "of the future": {"iat": NOW + 36000, "exp": NOW + 40000},
    "no beginning": {"iat": None},
    "another nonce": {"nonce": "x" * 43},
    "no nonce": {"nonce": None},
    "no subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "a subject that is none": {"sub": 7},
    "a subject that cannot be stored": {"sub": "a\0b"},
    "a subject that is too long": {"sub": "s" * 256},
    "a hash of another token": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}


@pytest.mark.parametrize("what", TWISTED)
async def test_id_token_that_is_not_for_this_sign_in_is_refused(world: World, what: str) -> None:
    world.provider.claims = TWISTED[what]
    answer = await world.sign_in("sub-t", preferred_username="tom")
    problem_of_page(answer, 503, "issuer-unavailable")
    assert SESSION not in answer.cookies
    world.provider.claims = {}


@pytest.mark.parametrize("how", ["none", "public key", "shared key", "another key", "garbage"])
async def test_id_token_that_is_not_signed_by_the_provider_is_refused(
    world: World, how: str
) -> None:
    provider = world.provider
    foreign = OpenIdProvider(provider.server.__class__())
    pem = foreign.key.as_pem(private=True)
    foreign.key = ECKey.import_key(pem, {"kid": provider.key.kid or ""})
    shared = {"kty": "oct", "k": "c2VjcmV0LXRoYXQtaXMtYmlnLWVub3VnaC1mb3ItSFMyNTY", "kid": "o"}
    provider.keys = [shared] if how == "shared key" else []
    provider.sign = {
        "none": provider.unsigned,
        "public key": provider.signed_with_public_key,
        "shared key": lambda claims: provider.signed_with_secret(
            b"secret-that-is-big-enough-for-HS256", claims, "o"
        ),
        "another key": foreign.signed,
        "garbage": lambda _: "a.b.c",
    }[how]
    answer = await world.sign_in("sub-s", preferred_username="sam")
    problem_of_page(answer, 503, "issuer-unavailable")


async def test_keys_are_remembered_and_new_ones_are_found(world: World) -> None:
    provider = world.provider
    before = provider.asked("/jwks")
    for _ in range(2):
        assert (await world.sign_in("sub-j", preferred_username="joe")).status_code == 200
    assert provider.asked("/jwks") == before + 1
    provider.rotate()
    used = world.api.services.federation.providers["main"]
    now_s = used._clock_s()
    used._clock_s = lambda: now_s + provider_module.KEYS_AGAIN_S + 1
    try:
        assert (await world.sign_in("sub-j", preferred_username="joe")).status_code == 200
        assert provider.asked("/jwks") == before + 2
        # Made-up keys make nobody ask for each token.
        provider.sign = lambda claims: provider.signed(claims).replace("eyJ", "eyJ", 1)
        provider.rotate()
        known = provider.key
        refused = await world.sign_in("sub-j", preferred_username="joe")
        problem_of_page(refused, 503, "issuer-unavailable")
        assert provider.asked("/jwks") == before + 2
        assert provider.key is known
    finally:
        used._clock_s = time.monotonic


async def test_answer_that_another_issuer_has_sent_is_refused(world: World) -> None:
    """RFC 9207: else a provider could have codes of another one sent to itself."""
    for metadata, issuer in (({}, "https://evil.example"), ({"iss": True}, None)):
        said = "authorization_response_iss_parameter_supported"
        world.provider.metadata = {said: True} if metadata else {}
        world.api.services.federation.providers["main"]._metadata = None
        client = world.browser()
        found = world.provider.sign_in(await world.led(client), "sub-i", preferred_username="ian")
        more = {} if issuer is None else {"iss": issuer}
        problem_of_page(await client.get(callback(END, {**found, **more})), 400, "sign-in-failed")


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/%0a/../x\n",
        "/\t/evil.example",
        "javascript:alert(1)",
        "docs",
        "",
        "/ä",
    ],
)
async def test_nobody_is_led_to_another_site(world: World, path: str) -> None:
    async with world.browser() as client:
        answer = await client.get(BEGIN, params={"return_to": path})
        problem_of(answer, 422, "invalid-request")
        found = world.provider.sign_in(await world.led(client), "sub-o", preferred_username="ola")
        flow = from_cookie(client.cookies[COOKIE], time.time())
        assert flow is not None
        # The browser's owner, or who has got at it, writes the cookie anew.
        forged = to_cookie(flow.__class__(flow.secret, "main", path, flow.expires_s))
        ended = await world.browser().get(
            callback(END, found), headers={"Cookie": f"{COOKIE}={forged}"}
        )
        problem_of_page(ended, 400, "sign-in-failed")


async def test_page_that_leads_on_cannot_be_written_into(world: World) -> None:
    client = world.browser()
    url = await world.led(client, return_to='/docs?"><script>alert(1)</script>')
    found = world.provider.sign_in(url, "sub-w", preferred_username="wil")
    page = await client.get(callback(END, found))
    assert page.status_code == 200
    assert "<script>" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")


async def test_refusal_of_the_provider_is_told_in_our_words(world: World) -> None:
    client = world.browser()
    found = world.provider.sign_in(await world.led(client), "sub-n")
    query = {"state": found["state"], "error": "access_denied", "error_description": "<b>call me"}
    answer = await client.get(callback(END, query))
    problem_of_page(answer, 400, "sign-in-failed")
    assert "access_denied" in answer.json()["detail"]
    assert "call me" not in answer.text


@pytest.mark.parametrize("path", [DISCOVERY, "/token", "/jwks"])
async def test_huge_answers_are_not_read_to_their_end(world: World, path: str) -> None:
    read = 0

    async def flood(_: Any, writer: asyncio.StreamWriter) -> None:
        nonlocal read
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
        for _ in range(2048):
            writer.write(b" " * 65536)
            await writer.drain()
            read += 65536

    await _misbehaving(world, path, flood)
    assert read < 64 * 1024 * 1024


@pytest.mark.parametrize("path", [DISCOVERY, "/token", "/jwks"])
@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'{"keys": 7}', b"{" * 5000, b"\xff"])
async def test_answers_that_are_none_sign_nobody_in(world: World, path: str, body: bytes) -> None:
    async def nonsense(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()

    await _misbehaving(world, path, nonsense)


async def test_provider_that_is_slow_delays_no_password(world: World) -> None:
    used = world.api.services.federation.providers["main"]
    hanging = asyncio.Event()
    answers = world.provider.server.handlers[DISCOVERY]

    async def drip(received: Any, writer: asyncio.StreamWriter) -> None:
        """Let no single read take long; all of it takes longer than anybody waits."""
        hanging.set()
        writer.write(b"HTTP/1.1 100 Continue\r\n")
        for number in range(100):
            writer.write(b"X-Header-%d: x\r\n" % number)
            await writer.drain()
            await asyncio.sleep(0.1)
        writer.write(b"\r\n")
        await answers(received, writer)

    settings, used.settings = used.settings, used.settings.model_copy(update={"timeout_s": 1.0})
    try:
        misbehaving = asyncio.create_task(_misbehaving(world, DISCOVERY, drip))
        await hanging.wait()
        async with world.browser() as client:
            body = {"name": "nobody", "password": "wrong"}
            problem_of(await client.post(f"{PREFIX}/login", json=body), 401, "unauthorized")
        await misbehaving
    finally:
        used.settings = settings


async def _misbehaving(world: World, path: str, handler: Any) -> None:
    """Sign in while a path of the provider is answered otherwise; check that nobody is."""
    client, handlers = world.browser(), world.provider.server.handlers
    url = None if path == DISCOVERY else await world.led(client)
    former, handlers[path] = handlers[path], handler
    try:
        if url is None:
            answer = await client.get(BEGIN)
        else:
            found = world.provider.sign_in(url, "sub-h", preferred_username="hal")
            answer = await client.get(callback(END, found))
    finally:
        handlers[path] = former
    assert answer.status_code == 503, answer.text
    assert answer.json()["type"] == "/problems/issuer-unavailable"
    assert SESSION not in answer.cookies


async def test_provider_that_is_down_is_not_asked_by_everybody(world: World) -> None:
    used, provider = world.api.services.federation.providers["main"], world.provider
    provider.metadata = {"issuer": None}
    now_s = used._clock_s()
    used._clock_s = lambda: now_s
    try:
        before = provider.asked(DISCOVERY)
        async with world.browser() as client:
            for _ in range(3):
                problem_of(await client.get(BEGIN), 503, "issuer-unavailable")
        assert provider.asked(DISCOVERY) == before + 1
        provider.metadata = {}
        used._clock_s = lambda: now_s + provider_module.DOWN_S
        async with world.browser() as client:
            await world.led(client)
    finally:
        used._clock_s = time.monotonic


@pytest.mark.parametrize(("is_verified", "status"), [(True, 200), (False, 403), (None, 403)])
async def test_address_that_nobody_has_verified_names_no_account(
    world: World, is_verified: bool | None, status: int
) -> None:
    """Else somebody would wait under the address of another one for rights."""
    used = world.api.services.federation.providers["main"]
    settings, used.settings = (
        used.settings,
        used.settings.model_copy(update={"name_claim": "email"}),
    )
    try:
        answer = await world.sign_in(
            f"sub-mail-{is_verified}", email="ada@example.org", email_verified=is_verified
        )
    finally:
        used.settings = settings
    assert answer.status_code == status, answer.text


async def test_answers_that_lead_elsewhere_are_not_followed(world: World) -> None:
    handlers = world.provider.server.handlers
    handlers["/elsewhere"] = handlers[DISCOVERY]

    async def leads(_: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()

    before = world.provider.asked("/elsewhere")
    await _misbehaving(world, DISCOVERY, leads)
    assert world.provider.asked("/elsewhere") == before


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"token_endpoint": None},
        {"token_endpoint": "http://evil.example/token"},
        {"authorization_endpoint": "ftp://evil.example"},
        {"jwks_uri": "https://user:pass@evil.example/jwks"},
        {"jwks_uri": 7},
    ],
)
async def test_discovery_that_leads_astray_is_refused(
    world: World, metadata: dict[str, Any]
) -> None:
    world.provider.metadata = metadata
    async with world.browser() as client:
        problem_of(await client.get(BEGIN), 503, "issuer-unavailable")


async def test_nothing_secret_is_logged(world: World) -> None:
    with structlog.testing.capture_logs() as logged:
        client = world.browser()
        found = world.provider.sign_in(await world.led(client), "sub-q", preferred_username="quy")
        kept = client.cookies[COOKIE]
        answer = await client.get(callback(END, found))
        world.provider.claims = {"nonce": "x"}
        await world.sign_in("sub-q", preferred_username="quy")
    assert answer.status_code == 200
    flow = from_cookie(kept, time.time())
    assert flow is not None
    for secret in (SECRET, found["code"], flow.secret, flow.verifier, answer.cookies[SESSION]):
        assert secret not in json.dumps(logged, default=str)


# -- command lines ------------------------------------------------------------------------------

VERIFIER = "v" * 43
LINE = {"port": 40000, "state": "s" * 20, "challenge": challenge_of(VERIFIER)}


async def _code(world: World, subject: str, name: str) -> str:
    client = world.browser()
    url = await world.led(client, **LINE)
    page = await client.get(
        callback(END, world.provider.sign_in(url, subject, preferred_username=name))
    )
    assert page.status_code == 200, page.text
    assert SESSION not in page.cookies, "the command is signed in, not the browser"
    assert number_of(challenge_of(VERIFIER)) in page.text
    to = page.text.partition('href="')[2].partition('"')[0].replace("&amp;", "&")
    parts = urlsplit(to)
    assert (parts.scheme, parts.netloc) == ("http", "127.0.0.1:40000")
    asked = parse_qs(parts.query)
    assert asked["state"] == [LINE["state"]]
    return asked["code"][0]


async def test_command_line_gets_a_session_once_and_with_its_own_verifier(world: World) -> None:
    code = await _code(world, "sub-cli", "cli")
    async with world.browser() as client:
        path = f"{PREFIX}/login/code"
        for verifier in ("w" * 43, "v" * 44):
            answer = await client.post(path, json={"code": code, "verifier": verifier})
            problem_of(answer, 400, "sign-in-failed")
        answer = await client.post(path, json={"code": code, "verifier": VERIFIER})
        assert answer.status_code == 204, answer.text
        assert (await world.me(answer))["name"] == "cli"
        again = await client.post(path, json={"code": code, "verifier": VERIFIER})
        problem_of(again, 400, "sign-in-failed")


async def test_code_of_a_command_line_is_worth_nothing_a_minute_later(world: World) -> None:
    code = await _code(world, "sub-cli", "cli")
    auditor = world.api.services.access.auditor
    clock = auditor.clock
    later = clock() + timedelta(seconds=61)
    auditor.clock = lambda: later
    try:
        async with world.browser() as client:
            body = {"code": code, "verifier": VERIFIER}
            answer = await client.post(f"{PREFIX}/login/code", json=body)
        problem_of(answer, 400, "sign-in-failed")
    finally:
        auditor.clock = clock


@pytest.mark.parametrize(
    "query",
    [
        {"port": 40000},
        {**LINE, "port": 80},
        {**LINE, "challenge": "short"},
        {**LINE, "state": "../../evil.example/aaaaaaa"},
    ],
)
async def test_command_line_says_all_or_nothing(world: World, query: dict[str, Any]) -> None:
    async with world.browser() as client:
        problem_of(await client.get(BEGIN, params=query), 422, "invalid-request")


# -- who is not known, and who does not answer ----------------------------------------------------


async def test_without_accounts_made_the_unknown_stay_out(
    cluster: ClusterSettings, world: World, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    settings = settings_of(world.provider, client_secret_file=secret, make_accounts=False)
    async with opened(cluster, settings) as services, in_process(services) as api:
        other = World(api, world.provider)
        answer = await other.sign_in("sub-u", preferred_username="una")
        problem_of_page(answer, 403, "no-account")
        async with services.store.unit_of_work() as uow:
            await account(uow, "una", services.store.clock())
            await uow.commit()
        body = {"issuer": world.provider.issuer, "subject": "sub-u"}
        linked = await api.client.put(f"{PREFIX}/users/una/identity", json=body)
        assert linked.status_code == 200
        assert (await other.me(await other.sign_in("sub-u")))["name"] == "una"
