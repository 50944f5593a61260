"""Calls about who may do what, against a real server: routes, what is sent once, signing in."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.client.errors import ApiProblem, ApiUnreachable, NoCluster, NotEncrypted
from shoal.client.rest.access.sign_in import sign_in
from shoal.client.rest.client import ShoalClient
from shoal.proto.tls import create_identity
from tests.integration.client.scripted_server import (
    Answer,
    Request,
    ScriptedServer,
    problem,
    scripted_server,
)

Call = Callable[[ShoalClient], Any]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


def api(request: Request) -> Answer:
    """Answer as the API does to who signs in."""
    if request.path == "/api/v1/login":
        cookie = "__Host-shoal=the-session; Path=/; Secure; HttpOnly; SameSite=Strict"
        return Answer(204, headers={"Set-Cookie": cookie})
    return Answer(200, {"name": "ada"})


def test_session_is_shown_by_its_cookie_and_ends_with_the_block(server: ScriptedServer) -> None:
    server.answer = api
    with sign_in(server.url, "ada", "hush", hint="") as session:
        assert session.get_me()["name"] == "ada"
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
            assert session.get_me()["name"] == "ada"
        with ShoalClient(server.url, "t", ca=ours.ca) as client:
            assert client.get_me()["name"] == "ada"
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
