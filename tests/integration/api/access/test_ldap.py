"""Signing in with the password of a directory: a real OpenLDAP server, and attacks on the way."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
import structlog

from shoal.api.access.failed_logins import FailedLogins
from shoal.api.access.sessions import COOKIE
from shoal.api.federation.issuers import open_federation
from shoal.api.routes.access import sign_in
from shoal.api.settings import ApiSettings
from shoal.proto.tls import create_identity
from shoal.runtime.settings import ClusterSettings
from tests.integration.api.access.people import account, browser
from tests.integration.api.conftest import PREFIX, Api, in_process, opened, problem_of
from tests.support.programs import program
from tests.support.servers.slapd import (
    BASE,
    GROUPS,
    PASSWORD,
    PEOPLE,
    READER,
    READER_PASSWORD,
    Slapd,
    slapd,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATH = f"{PREFIX}/login/ldap"
ISSUER = "ldap:directory"


@dataclass
class Listener:
    """A port that takes what comes, and answers each connection with the same bytes."""

    answer: bytes = b""
    received: list[bytes] = field(default_factory=list)

    def __enter__(self) -> "Listener":
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # a client may go as it likes
                connection.settimeout(60)
                self.received.append(connection.recv(65536))
                connection.sendall(self.answer)
                while more := connection.recv(65536):
                    self.received.append(more)


@dataclass
class World:
    """An API with a directory."""

    api: Api
    server: Slapd
    reader_file: Path
    elsewhere: Listener

    async def login(self, name: str, password: str = PASSWORD, path: str = PATH) -> httpx.Response:
        """Sign in, as a browser that was never here."""
        async with self.browser() as client:
            return await client.post(path, json={"name": name, "password": password})

    def browser(self) -> httpx.AsyncClient:
        """Return a client that sends nothing by itself."""
        transport = self.api.client._transport
        return httpx.AsyncClient(transport=transport, base_url="https://localhost")

    async def me(self, answer: httpx.Response) -> Any:
        """Return who the session of an answer is."""
        assert answer.status_code == 204, answer.text
        async with self.browser() as client:
            found = await client.get(f"{PREFIX}/me", headers=browser(answer.cookies[COOKIE]))
        return found.json()

    async def groups(self, name: str) -> list[str]:
        """Return the groups of a user."""
        found = await self.api.client.get(f"{PREFIX}/groups")
        return [one["name"] for one in found.json()["items"] if name in one["members"]]

    def settings(self, **changes: Any) -> ApiSettings:
        """Settings with this directory."""
        found = {
            "servers": self.server.ldaps,
            "ca": str(self.server.tls.ca),
            "bind_dn": READER,
            "bind_password_file": str(self.reader_file),
            "base_dn": PEOPLE,
            "make_accounts": True,
            "groups": {f"CN=Analysts, {GROUPS}": "analysts", f"cn=operators,{GROUPS}": "operators"},
            "timeout_s": 60,
            **changes,
        }
        named = {key: value for key, value in found.items() if value is not None}
        return ApiSettings.model_validate({"port": 0, "ldap": named})

    @asynccontextmanager
    async def directory(self, **changes: Any) -> AsyncIterator[Any]:
        """Open the directory with other settings."""
        async with AsyncExitStack() as stack:
            yield (await open_federation(stack, self.settings(**changes))).directory


@pytest.fixture(scope="module")
def reader_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with the password of the account that searches."""
    file = tmp_path_factory.mktemp("reader") / "password"
    file.write_text(f"{READER_PASSWORD}\n")
    file.chmod(0o600)
    return file


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Listener]:
    """Where a part of the directory's tree is said to be."""
    with Listener() as listener:
        yield listener


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, elsewhere: Listener) -> Iterator[Slapd]:
    """A directory for all tests."""
    program("slapd")
    referral = f"ldap://{elsewhere.address}/ou=elsewhere,{PEOPLE}"
    with slapd(tmp_path_factory.mktemp("slapd"), referral) as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    module_cluster: ClusterSettings, server: Slapd, reader_file: Path, elsewhere: Listener
) -> AsyncIterator[World]:
    """One API for all tests."""
    found = World(None, server, reader_file, elsewhere)  # type: ignore[arg-type]
    async with (
        opened(module_cluster, found.settings()) as services,
        in_process(services) as api,
    ):
        found.api = api
        for name in ("analysts", "operators"):
            await api.client.post(f"{PREFIX}/groups", json={"name": name})
        yield found


@pytest.fixture(autouse=True)
def fresh(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong passwords of one test are none of the next, and cost no time."""
    object.__setattr__(world.api.services.access, "failed_logins", FailedLogins())
    monkeypatch.setattr(sign_in, "REFUSED_AFTER_S", 0.0)


async def test_person_gets_an_account_with_a_session_and_groups(world: World) -> None:
    me = await world.me(await world.login("ada"))
    assert (me["name"], me["issuer"], me["has_password"]) == ("ada", ISSUER, False)
    user = (await world.api.client.get(f"{PREFIX}/users/ada")).json()
    assert user["full_name"] == "Ada Doe"
    assert len(user["subject"]) == 36
    assert await world.groups("ada") == ["analysts"]
    ways = (await world.api.client.get(f"{PREFIX}/login")).json()["items"]
    assert [(one["kind"], one["path"]) for one in ways] == [
        ("password", f"{PREFIX}/login"),
        ("ldap", PATH),
    ]


async def test_groups_are_those_of_the_latest_sign_in(world: World) -> None:
    world.server.put_into_group("bob", "analysts")
    await world.me(await world.login("bob"))
    assert await world.groups("bob") == ["analysts"]
    world.server.take_out_of_group("bob", "analysts")
    world.server.put_into_group("bob", "operators")
    await world.me(await world.login("bob"))
    assert await world.groups("bob") == ["operators"]


async def test_groups_are_found_by_their_members_too(world: World) -> None:
    async with world.directory(group_base_dn=GROUPS, groups_attribute="") as directory:
        found = await directory.identity("ada", PASSWORD)
    assert found.groups == {f"cn=analysts,{GROUPS}"}


async def test_wrong_password_unknown_name_and_disabled_account_read_the_same(
    world: World,
) -> None:
    await world.me(await world.login("dora"))
    await world.api.client.patch(f"{PREFIX}/users/dora", json={"disabled": True})
    answers = [
        await world.login("ada", "wrong"),
        await world.login("unknown", "wrong"),
        await world.login("unknown"),
        await world.login("twin"),
        await world.login("dora"),
        await world.login("ada", path=f"{PREFIX}/login"),  # has no password here
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.json()["detail"] for answer in answers}) == 1
    assert not any("set-cookie" in answer.headers for answer in answers)


async def test_refusals_take_as_long_whether_the_directory_knows_the_name_or_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for a time that is longer than any answer of the directory here."""
    waited: list[float] = []

    directory = world.api.services.federation.directory
    assert directory is not None
    ask, answered = directory.identity, asyncio.Event()

    async def identity(name: str, password: str) -> Any:
        found = await ask(name, password)
        answered.set()
        return found

    async def sleep(seconds: float) -> None:
        await answered.wait()
        waited.append(seconds)  # not reached by what is cancelled

    monkeypatch.setattr(sign_in, "REFUSED_AFTER_S", 7.0)
    monkeypatch.setattr(sign_in, "sleep", sleep)
    monkeypatch.setattr(directory, "identity", identity)
    for name in ("ada", "unknown", "twin"):
        answered.clear()
        problem_of(await world.login(name, "wrong"), 401, "unauthorized")
    assert waited == [7.0] * 3


async def test_wrong_passwords_slow_down(world: World) -> None:
    statuses = [(await world.login("ada", "wrong")).status_code for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    problem_of(await world.login("ADA"), 429, "too-many-requests")
    assert (await world.login("cleo")).status_code == 204


@pytest.mark.parametrize("password", ["", "\u00ad", "\0", "\u200b\u00ad"])
async def test_no_password_signs_nobody_in(world: World, password: str) -> None:
    """The server lets in who gives none, and a text can be prepared until nothing is left."""
    for changes in ({}, {"bind_dn": None, "bind_password_file": None, "user_dn": TEMPLATE}):
        async with world.directory(**changes) as directory:
            assert await directory.identity("ada", password) is None
    assert (await world.login("ada", password)).status_code in (401, 422)


TEMPLATE = f"uid={{name}},{PEOPLE}"


@pytest.mark.parametrize(
    "name",
    [
        "*",
        "a*",
        "ad?",
        "*)(uid=ada",
        "ada)(|(uid=*",
        "ada)(&",
        "x)(|(objectClass=*)",
        "ada\0",
        "\\61da",
        "ada,ou=people",
        f"ada,{PEOPLE}",
        "ada+sn=ada",
        "ada#",
        '"ada"',
        "twin,ou=twins",
    ],
)
async def test_names_are_names_and_no_filters_or_parts_of_a_dn(world: World, name: str) -> None:
    for changes in ({}, {"bind_dn": None, "bind_password_file": None, "user_dn": TEMPLATE}):
        async with world.directory(**changes) as directory:
            assert await directory.identity(name, PASSWORD) is None


async def test_dn_template_needs_no_account_of_its_own_and_starts_tls(world: World) -> None:
    changes = {"bind_dn": None, "bind_password_file": None, "user_dn": TEMPLATE}
    async with world.directory(servers=world.server.ldap, start_tls=True, **changes) as directory:
        found = await directory.identity("ada", PASSWORD)
        assert (found.name, found.groups) == ("ada", {f"cn=analysts,{GROUPS}"})
        assert await directory.identity("ada", "wrong") is None
        assert await directory.identity("unknown", PASSWORD) is None


async def test_servers_are_tried_in_order(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with world.directory(servers=f"ldaps://127.0.0.1:{port} {world.server.ldaps}") as found:
        assert (await found.identity("ada", PASSWORD)).name == "ada"


async def test_nothing_is_followed_elsewhere(world: World) -> None:
    await world.login("ada")
    await world.login("unknown")
    async with world.directory(base_dn=f"ou=elsewhere,{PEOPLE}", timeout_s=1) as directory:
        with pytest.raises(Exception, match="cannot be asked"):
            await directory.identity("ada", PASSWORD)
    assert world.elsewhere.received == []


async def test_name_is_not_the_key(world: World) -> None:
    """Somebody gets the name of somebody who has another one now."""
    for name in ("finn", "gwen"):
        assert (await world.me(await world.login(name)))["name"] == name
    world.server.rename("finn", "finnegan")
    assert (await world.me(await world.login("finnegan")))["name"] == "finn"
    world.server.rename("gwen", "finn")
    assert (await world.me(await world.login("finn")))["name"] == "gwen"


async def test_account_that_exists_is_never_taken_over(world: World) -> None:
    async with world.api.services.store.unit_of_work() as uow:
        await account(uow, "boss", world.api.services.store.clock(), is_admin=True)
        await uow.commit()
    answer = await world.login("boss")
    problem_of(answer, 409, "name-taken")
    subject = answer.json()["detail"].rpartition(" ")[2]
    body = {"issuer": ISSUER, "subject": subject}
    put = await world.api.client.put(f"{PREFIX}/users/boss/identity", json=body)
    assert put.status_code == 200
    assert (await world.me(await world.login("boss")))["is_admin"]


# -- the way there ----------------------------------------------------------------------------


async def test_certificate_of_another_authority_is_refused(world: World, tmp_path: Path) -> None:
    other = create_identity(tmp_path / "other").ca
    for changes in (
        {"ca": str(other)},
        {"ca": None},
        {"servers": world.server.ldaps.replace("127.0.0.1", "localhost")},  # not in it
        {"servers": world.server.ldap, "start_tls": True, "ca": str(other)},
    ):
        async with world.directory(**changes) as directory:
            with pytest.raises(Exception, match="cannot be asked"):
                await directory.identity("ada", PASSWORD)


REFUSES_TLS = bytes.fromhex("300c02010178070a010204000400")  # ExtendedResponse: protocolError


@pytest.mark.parametrize("scheme", ["ldaps", "ldap"])
async def test_nothing_is_said_in_clear(world: World, scheme: str) -> None:
    """Somebody on the way who says that there is no encryption gets no password."""
    with Listener(REFUSES_TLS) as listener:
        async with world.directory(
            servers=f"{scheme}://{listener.address}", start_tls=scheme == "ldap"
        ) as directory:
            with pytest.raises(Exception, match="cannot be asked"):
                await directory.identity("ada", PASSWORD)
    said = b"".join(listener.received)
    assert said
    for secret in (READER.encode(), READER_PASSWORD.encode(), PASSWORD.encode(), b"ada"):
        assert secret not in said


async def test_directory_that_hangs_delays_no_password_of_ours(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        url = f"ldaps://127.0.0.1:{hanging.getsockname()[1]}"
        async with world.directory(servers=url, timeout_s=1) as directory:
            asking = asyncio.create_task(directory.identity("ada", PASSWORD))
            await asyncio.sleep(0)
            answer = await world.login("nobody", "wrong", f"{PREFIX}/login")
            problem_of(answer, 401, "unauthorized")
            with pytest.raises(Exception, match="cannot be asked"):
                await asking


async def test_own_account_that_is_refused_is_told_to_the_log_alone(
    world: World, tmp_path: Path
) -> None:
    file = tmp_path / "wrong"
    file.write_text("not the password")
    file.chmod(0o600)
    with structlog.testing.capture_logs() as logged:
        async with world.directory(bind_password_file=str(file)) as directory:
            with pytest.raises(Exception, match="cannot be asked") as refused:
                await directory.identity("ada", PASSWORD)
    assert "bind_dn" in json.dumps(logged)
    assert "bind_dn" not in str(refused.value)
    assert BASE not in str(refused.value)


async def test_no_password_is_logged(world: World) -> None:
    with structlog.testing.capture_logs() as logged:
        await world.login("ada")
        await world.login("ada", "a wrong password")
        await world.login("twin")
        async with world.directory(servers="ldaps://127.0.0.1:1") as directory:
            with pytest.raises(Exception, match="cannot be asked"):
                await directory.identity("ada", PASSWORD)
    assert logged
    for secret in (PASSWORD, READER_PASSWORD, "a wrong password"):
        assert secret not in json.dumps(logged, default=str)
