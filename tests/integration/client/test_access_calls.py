"""Calls about who may do what, against a real server: routes, what is sent once, signing in."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.client.errors import ApiProblem, ApiUnreachable, NoCluster, NotEncrypted
from shoal.client.rest import connection
from shoal.client.rest.access.sign_in import sign_in
from shoal.client.rest.client import ShoalClient
from shoal.proto.tls import create_identity
from tests.integration.client.scripted_server import (
    HANG_UP,
    Answer,
    Request,
    ScriptedServer,
    problem,
    scripted_server,
)

Call = Callable[[ShoalClient], Any]
LIST: dict[str, Any] = {"items": []}
PAGE: dict[str, Any] = {"items": [], "next": None}
TOKEN = {"name": "t", "permissions": None, "projects": None, "days": 90}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


@pytest.fixture
def client(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShoalClient]:
    monkeypatch.setattr(connection, "RETRY_PAUSES_S", (0.0, 0.0, 0.0))
    with ShoalClient(server.url, "the token") as client:
        yield client


@pytest.mark.parametrize(
    ("call", "answer", "method", "path", "sent"),
    [
        (lambda c: c.me(), {}, "GET", "/me", None),
        (
            lambda c: c.change_password("a", "b"),
            None,
            "PUT",
            "/me/password",
            {"current": "a", "new": "b", "keep_tokens": False},
        ),
        (lambda c: c.sessions(), LIST, "GET", "/me/sessions", None),
        (lambda c: c.end_session(5), None, "DELETE", "/me/sessions/5", None),
        (lambda c: c.tokens(), LIST, "GET", "/me/tokens", None),
        (lambda c: c.add_token("t"), {}, "POST", "/me/tokens", TOKEN),
        (lambda c: c.revoke_token(3), None, "DELETE", "/me/tokens/3", None),
        (lambda c: list(c.users()), PAGE, "GET", "/users", None),
        (lambda c: c.user("a@b.c"), {}, "GET", "/users/a%40b.c", None),
        (
            lambda c: c.link_user("a@b.c", "https://i", "s"),
            {},
            "PUT",
            "/users/a%40b.c/identity",
            {"issuer": "https://i", "subject": "s"},
        ),
        (lambda c: c.unlink_user("a"), None, "DELETE", "/users/a/identity", None),
        (
            lambda c: c.add_user("ada", is_admin=True),
            {},
            "POST",
            "/users",
            {"name": "ada", "full_name": "", "is_admin": True, "password": None},
        ),
        (
            lambda c: c.change_user("ada", disabled=False),
            {},
            "PATCH",
            "/users/ada",
            {"disabled": False},
        ),
        (lambda c: c.reset_password("ada"), {}, "POST", "/users/ada/password-reset", None),
        (lambda c: c.user_tokens("ada"), LIST, "GET", "/users/ada/tokens", None),
        (lambda c: c.revoke_user_token("ada", 3), None, "DELETE", "/users/ada/tokens/3", None),
        (lambda c: list(c.groups()), PAGE, "GET", "/groups", None),
        (lambda c: c.group("g"), {}, "GET", "/groups/g", None),
        (lambda c: c.add_group("g"), {}, "POST", "/groups", {"name": "g", "description": ""}),
        (lambda c: c.describe_group("g", "x"), {}, "PATCH", "/groups/g", {"description": "x"}),
        (lambda c: c.delete_group("g"), None, "DELETE", "/groups/g", None),
        (lambda c: c.add_group_member("g", "p/a"), {}, "PUT", "/groups/g/members/p%2Fa", None),
        (lambda c: c.remove_group_member("g", "a"), None, "DELETE", "/groups/g/members/a", None),
        (lambda c: c.members("p"), LIST, "GET", "/projects/p/members", None),
        (lambda c: c.grants("p"), LIST, "GET", "/projects/p/grants", None),
        (
            lambda c: c.put_grant("p", "*", "run"),
            {},
            "PUT",
            "/projects/p/grants/%2A",
            {"what": "run"},
        ),
        (lambda c: c.resource_grants("p"), LIST, "GET", "/projects/p/resource-grants", None),
        (
            lambda c: c.put_resource_grant("p", "q", ["lib/"]),
            {},
            "PUT",
            "/projects/p/resource-grants/q",
            {"paths": ["lib/"]},
        ),
        (
            lambda c: c.remove_resource_grant("p", "*"),
            None,
            "DELETE",
            "/projects/p/resource-grants/%2A",
            None,
        ),
        (lambda c: list(c.restrictions()), PAGE, "GET", "/restrictions", None),
        (
            lambda c: c.put_restriction("worker-group", "gpu", ["p"]),
            {},
            "PUT",
            "/restrictions/worker-group/gpu",
            {"projects": ["p"]},
        ),
        (
            lambda c: c.remove_restriction("environment", "e"),
            None,
            "DELETE",
            "/restrictions/environment/e",
            None,
        ),
        (lambda c: c.remove_grant("p", "q"), None, "DELETE", "/projects/p/grants/q", None),
        (
            lambda c: c.put_member("p", "service-account", "q/a", "reader"),
            {},
            "PUT",
            "/projects/p/members/service-account/q%2Fa",
            {"role": "reader"},
        ),
        (
            lambda c: c.remove_member("p", "user", "a"),
            None,
            "DELETE",
            "/projects/p/members/user/a",
            None,
        ),
        (
            lambda c: list(c.service_accounts("p")),
            PAGE,
            "GET",
            "/projects/p/service-accounts",
            None,
        ),
        (
            lambda c: c.add_service_account("p", "a", "runner"),
            {},
            "POST",
            "/projects/p/service-accounts",
            {"name": "a", "role": "runner"},
        ),
        (
            lambda c: c.disable_service_account("p", "a"),
            None,
            "DELETE",
            "/projects/p/service-accounts/a",
            None,
        ),
        (
            lambda c: c.service_account_tokens("p", "a"),
            LIST,
            "GET",
            "/projects/p/service-accounts/a/tokens",
            None,
        ),
        (
            lambda c: c.add_service_account_token("p", "a", "t", projects=["p"], days=None),
            {},
            "POST",
            "/projects/p/service-accounts/a/tokens",
            {**TOKEN, "projects": ["p"], "days": None},
        ),
        (
            lambda c: c.revoke_service_account_token("p", "a", 3),
            None,
            "DELETE",
            "/projects/p/service-accounts/a/tokens/3",
            None,
        ),
    ],
)
def test_call_reaches_its_route(
    client: ShoalClient,
    server: ScriptedServer,
    call: Call,
    answer: Any,
    method: str,
    path: str,
    sent: Any,
) -> None:
    server.answers(Answer(200 if answer is not None else 204, answer))
    call(client)
    [request] = server.requests
    assert (request.method, request.path, request.body) == (method, f"/api/v1{path}", sent)
    assert request.headers["authorization"] == "Bearer the token"


@pytest.mark.parametrize("trouble", [HANG_UP, problem(503, "database-unavailable", "busy")])
@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.add_user("ada"),  # the password that was made is in the first answer alone
        lambda c: c.add_token("t"),
        lambda c: c.add_group("g"),
        lambda c: c.add_service_account("p", "a", "runner"),
        lambda c: c.add_service_account_token("p", "a", "t"),
        lambda c: c.change_password("a", "b"),  # the present one is another one then
    ],
)
def test_what_another_request_would_answer_otherwise_is_sent_once(
    client: ShoalClient, server: ScriptedServer, call: Call, trouble: Answer
) -> None:
    server.answers(trouble)
    with pytest.raises((ApiProblem, ApiUnreachable)):
        call(client)
    assert len(server.requests) == 1


def api(request: Request) -> Answer:
    """Answer as the API does to who signs in."""
    if request.path == "/api/v1/login":
        cookie = "__Host-shoal=the-session; Path=/; Secure; HttpOnly; SameSite=Strict"
        return Answer(204, headers={"Set-Cookie": cookie})
    return Answer(200, {"name": "ada"})


def test_session_is_shown_by_its_cookie_and_ends_with_the_block(server: ScriptedServer) -> None:
    server.answer = api
    with sign_in(server.url, "ada", "hush", hint="") as session:
        assert session.me()["name"] == "ada"
    login, *others = server.requests
    assert login.body == {"name": "ada", "password": "hush"}
    assert "cookie" not in login.headers
    assert [request.path for request in others] == ["/api/v1/me", "/api/v1/logout"]
    for request in others:
        assert request.headers["cookie"] == "__Host-shoal=the-session"
        assert request.headers["sec-fetch-site"] == "none"


def test_wrong_password_is_told_in_the_words_of_the_api_and_not_tried_again(
    server: ScriptedServer,
) -> None:
    server.answers(problem(401, "unauthorized", "wrong name or password"))
    with (
        pytest.raises(ApiProblem, match=r"^wrong name or password$"),
        sign_in(server.url, "ada", "hush", hint=""),
    ):
        raise AssertionError("nobody has signed in")
    assert len(server.requests) == 1


def test_server_that_begins_no_session_is_no_api(server: ScriptedServer) -> None:
    with (
        pytest.raises(ApiProblem, match="is that the address of a Shoal API"),
        sign_in(server.url, "ada", "hush", hint=""),
    ):
        raise AssertionError("nobody has signed in")


@pytest.mark.parametrize("url", ["http://192.0.2.7:8765", "http://localhost.example"])
def test_password_is_not_sent_to_another_machine_in_the_clear(url: str) -> None:
    with pytest.raises(NotEncrypted), sign_in(url, "ada", "hush", hint=""):
        raise AssertionError("nobody has signed in")


def test_certificate_must_be_of_a_known_authority(tmp_path: Path) -> None:
    ours, other = create_identity(tmp_path / "ours"), create_identity(tmp_path / "other")
    with scripted_server(ours) as server:
        server.answer = api
        with sign_in(server.url, "ada", "hush", hint="", ca=ours.ca) as session:
            assert session.me()["name"] == "ada"
        with ShoalClient(server.url, "t", ca=ours.ca) as client:
            assert client.me()["name"] == "ada"
        known = len(server.requests)
        for ca in (other.ca, None):
            with (
                pytest.raises(ApiUnreachable, match=r"CERTIFICATE_VERIFY_FAILED.*--ca FILE"),
                sign_in(server.url, "ada", "hush", hint="", ca=ca),
            ):
                raise AssertionError("nobody has signed in")
        assert len(server.requests) == known


@pytest.mark.parametrize("content", [None, "nothing of the kind"])
def test_authority_that_cannot_be_read_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(NoCluster, match=f"cannot read the certificates in {file}: .+; expected"):
        ShoalClient("https://127.0.0.1:1", "t", ca=file)
