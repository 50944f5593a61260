"""Redirects are followed if asked for, judged one by one, and never take keys to another server."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.http.kit import run
from tests.support.servers.http_server import HttpServer, answer, says

KEYS = {"headers": {"X-Api-Key": "k", "Cookie": "c", "Accept": "text/csv"}, "auth": {"bearer": "t"}}


async def test_redirect_is_an_answer_unless_it_is_followed(
    server: HttpServer, tmp_path: Path
) -> None:
    server.handlers |= {"/a": says(answer(302, Location="/b?x=1")), "/b": says(answer(200, "end"))}
    url = f"{server.url}/a"
    refused = await run(tmp_path / "1", {"url": url})
    assert refused.code == 65
    assert refused.reason == (
        "the status is 302, not 2xx; it leads to /b?x=1: follow_redirects says how many redirects "
        "are followed"
    )
    assert (await run(tmp_path / "2", {"url": url, "success": {"status": [302]}})).code == 0
    outputs = {"body": "body"}
    done = await run(tmp_path / "3", {"url": url, "follow_redirects": 1, "outputs": outputs})
    assert done.outputs == {"body": "end"}
    assert server.received[-1].target == "/b?x=1"


@pytest.mark.parametrize(
    ("status", "method", "expected"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (302, "PUT", "PUT"),
        (303, "HEAD", "HEAD"),
    ],
)
async def test_method_after_a_redirect(
    server: HttpServer, tmp_path: Path, status: int, method: str, expected: str
) -> None:
    server.handlers |= {"/a": says(answer(status, Location="/b")), "/b": says(answer(200))}
    params: dict[str, Any] = {"url": f"{server.url}/a", "method": method, "follow_redirects": 1}
    body = b"" if method == "HEAD" else b"hello"
    if body:
        params["body"] = {"text": "hello"}
    assert (await run(tmp_path, {**params, **KEYS})).code == 0
    last = server.received[-1]
    same_method = expected == method
    assert (last.method, last.body) == (expected, body if same_method else b"")
    assert ("content-type" in last.headers) == (same_method and bool(body))
    assert last.headers["authorization"] == "Bearer t"


async def test_keys_stay_with_the_first_server(server: HttpServer, tmp_path: Path) -> None:
    async with HttpServer({"/": says(answer(200, "end"))}) as other:
        server.handlers["/"] = says(answer(307, Location=f"http://u:p@127.0.0.1:{other.port}/#x"))
        params = {"url": server.url, "follow_redirects": 3, **KEYS}
        assert (await run(tmp_path, params)).code == 0
        sent = other.received[0].headers
    assert sent.keys() == {"host", "accept", "accept-encoding", "connection", "user-agent"}
    assert sent["accept"] == "text/csv"
    assert sent["host"] == f"127.0.0.1:{other.port}"


async def test_body_stays_with_the_first_server(server: HttpServer, tmp_path: Path) -> None:
    async with HttpServer({"/": says(answer(200))}) as other:
        server.handlers["/"] = says(answer(307, Location=other.url))
        params = {"url": server.url, "method": "POST", "body": {"text": "x"}}
        done = await run(tmp_path, {**params, "follow_redirects": 3})
        assert done.code == 65
        assert "another server, which is not sent the body" in str(done.reason)
        assert other.received == []


async def test_loop_of_redirects_ends(server: HttpServer, tmp_path: Path) -> None:
    server.handlers |= {
        "/a": says(answer(302, Location="/b")),
        "/b": says(answer(302, Location="/a")),
    }
    done = await run(tmp_path, {"url": f"{server.url}/a", "follow_redirects": 5})
    assert (done.code, done.reason) == (65, "more than 5 redirects")
    assert len(server.received) == 6


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("file:///etc/passwd", "no http or https URL"),
        ("gopher://127.0.0.1/", "no http or https URL"),
        ("http://[::1", "not a URL"),
        ("http://127.0.0.2:1/", "127.0.0.2 may not be reached from this machine"),
        ("http://2130706434:1/", "(127.0.0.2) may not be reached"),
        ("http://[::ffff:127.0.0.2]:1/", "may not be reached"),
        ("//169.254.169.254/latest/meta-data", "link-local"),
    ],
)
async def test_redirect_is_judged_like_the_first_request(
    server: HttpServer, tmp_path: Path, location: str, reason: str
) -> None:
    server.handlers["/"] = says(answer(302, Location=location))
    settings = {"http_allow": "127.0.0.1/32"}
    params = {"url": server.url, "follow_redirects": 3}
    done = await run(tmp_path, params, settings=settings)
    assert done.code == 65
    assert reason in str(done.reason)


async def test_post_is_not_repeated_because_its_redirect_failed(
    server: HttpServer, tmp_path: Path
) -> None:
    params = {"url": server.url, "method": "POST", "follow_redirects": 3}
    for number, (status, code) in enumerate([(303, 65), (307, 65), (308, 65)]):
        server.handlers["/"] = says(answer(status, Location="/b"))
        server.handlers["/b"] = says(answer(500))
        assert (await run(tmp_path / str(number), params)).code == code
    server.handlers["/b"] = says(answer(429))
    for number, (status, code) in enumerate([(303, 65), (307, 1)]):
        server.handlers["/"] = says(answer(status, Location="/b"))
        assert (await run(tmp_path / f"busy {number}", params)).code == code


async def test_redirect_to_a_server_that_is_gone_may_pass(
    server: HttpServer, tmp_path: Path
) -> None:
    """307 says that nothing was done here, and nothing was sent there."""
    async with HttpServer() as gone:
        url = gone.url
    params = {"url": server.url, "method": "POST", "follow_redirects": 3}
    for number, (status, code) in enumerate([(307, 1), (303, 65)]):
        server.handlers["/"] = says(answer(status, Location=url))
        assert (await run(tmp_path / str(number), params)).code == code
