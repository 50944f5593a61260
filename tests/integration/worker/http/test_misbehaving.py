"""Servers that misbehave: one deadline holds, little memory is used, and no POST is repeated."""

import asyncio
import gzip
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.http.kit import dripping, measured, never, run
from tests.support.servers.http_server import Handler, HttpServer, Received, answer, says

MiB = 1 << 20
UNKNOWN = "may have carried the request out"


async def reset(received: Received, writer: asyncio.StreamWriter) -> None:
    """Break the connection in the middle of the body."""
    writer.write(answer(200, "beginning", Content_Length="1000"))
    await writer.drain()
    writer.transport.abort()


async def close(received: Received, writer: asyncio.StreamWriter) -> None:
    """Hang up without an answer."""


async def garbage(received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 mail.example.org ESMTP\r\n")


async def endless_headers(received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-More: " + b"y" * 1_000 + b"\r\n")
        await writer.drain()


async def endless_body(received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"z" * 0x10000 + b"\r\n")
        await writer.drain()


async def provisional(received: Received, writer: asyncio.StreamWriter) -> None:
    """Say again and again that an answer will come."""
    while True:
        writer.write(b"HTTP/1.1 102 Processing\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "handler",
    [
        never,
        provisional,
        dripping(b"HTTP/1.1 200 OK\r\nX-A: "),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"),
    ],
)
@pytest.mark.parametrize(("method", "code"), [("GET", 1), ("POST", 65)])
async def test_deadline_ends_what_goes_on_and_on(
    server: HttpServer, tmp_path: Path, handler: Handler, method: str, code: int
) -> None:
    server.handlers["/"] = handler
    done = await run(tmp_path, {"url": server.url, "method": method, "timeout": "700ms"})
    assert done.code == code
    assert "not done within 700ms: " in str(done.reason)
    assert (UNKNOWN in str(done.reason)) == (code == 65)


@pytest.mark.parametrize("handler", [reset, close, garbage, endless_headers])
async def test_answer_that_is_lost(server: HttpServer, tmp_path: Path, handler: Handler) -> None:
    """A GET may be tried again. A POST not: nobody knows what has become of it."""
    server.handlers["/"] = handler
    cases: list[tuple[dict[str, Any], int]] = [
        ({"method": "GET"}, 1),
        ({"method": "PUT", "body": {"text": "x"}}, 1),
        ({"method": "POST", "body": {"text": "x"}}, 65),
        ({"method": "PATCH"}, 65),
        ({"method": "POST", "idempotent": True}, 1),
        ({"method": "POST", "idempotency_header": "Idempotency-Key"}, 1),
        ({"method": "GET", "idempotent": False}, 65),
    ]
    for number, (params, code) in enumerate(cases):
        done = await run(tmp_path / str(number), {"url": server.url, **params})
        assert done.code == code, (params, done)
        assert (UNKNOWN in str(done.reason)) == (code == 65)
    assert len(server.received) == len(cases)


async def test_request_that_was_never_sent_may_be_sent_again(tmp_path: Path) -> None:
    async with HttpServer() as gone:
        url = gone.url
    done = await run(tmp_path, {"url": url, "method": "POST"})
    assert done.code == 1
    assert str(done.reason).startswith("cannot connect to 127.0.0.1: 127.0.0.1: ")
    assert "refused" in str(done.reason)
    nobody = await run(tmp_path, {"url": "http://no-such-host.invalid/", "method": "POST"})
    assert nobody.code == 1
    assert "cannot connect to no-such-host.invalid: cannot look its name up" in str(nobody.reason)


@pytest.mark.parametrize(
    ("status", "get", "post"),
    [
        (400, 65, 65),
        (404, 65, 65),
        (302, 65, 65),
        (408, 1, 1),
        (425, 1, 1),
        (429, 1, 1),
        (500, 1, 65),
        (503, 1, 65),
    ],
)
async def test_status_says_whether_another_attempt_makes_sense(
    server: HttpServer, tmp_path: Path, status: int, get: int, post: int
) -> None:
    server.handlers["/"] = says(answer(status))
    for method, code in (("GET", get), ("POST", post)):
        done = await run(tmp_path, {"url": server.url, "method": method})
        assert done.code == code
        assert f"the status is {status}, not 2xx" in str(done.reason)


async def test_wait_that_the_server_asks_for_is_told(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer(429, Retry_After="120"))
    reason = (await run(tmp_path, {"url": server.url})).reason
    assert (
        reason == "the status is 429, not 2xx; the server asks to wait for 2m 00s: see retry_delay"
    )


@pytest.mark.parametrize("handler", [endless_body, says(answer(200, Content_Length="20000000"))])
async def test_body_beyond_the_limit_is_refused(
    server: HttpServer, tmp_path: Path, handler: Handler
) -> None:
    server.handlers["/"] = handler
    for number, params in enumerate(({}, {"download": "file", "max_body": "10 MiB"})):
        done = await run(tmp_path / str(number), {"url": server.url, **params})
        assert done.code == 65
        assert "the body is longer than 10,485,760 bytes" in str(done.reason)


async def test_body_within_the_limit_is_whole(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer(200, b"x" * 1_000))
    for most, code in (("1000 B", 0), (999, 65)):
        assert (await run(tmp_path, {"url": server.url, "max_body": most})).code == code


def bomb(size: int) -> bytes:
    """Return gzip of so many zero bytes, without having them at once."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(MiB)) for _ in range(size // MiB)) + packer.flush()


async def test_gzip_bomb_costs_little_memory(server: HttpServer, tmp_path: Path) -> None:
    packed = bomb(500 * MiB)
    server.handlers["/small"] = says(answer(200, gzip.compress(b"x"), Content_Encoding="gzip"))
    server.handlers["/bomb"] = says(answer(200, packed, Content_Encoding="gzip"))
    small, before = await measured(tmp_path / "1", {"url": f"{server.url}/small"})
    done, most = await measured(tmp_path / "2", {"url": f"{server.url}/bomb"})
    assert small.code == 0
    assert done.code == 65
    assert "the body is longer than 10,485,760 bytes" in str(done.reason)
    assert most - before <= 5 * MiB, f"{(most - before) / MiB:.1f} MiB more"


async def test_large_download_costs_little_memory(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/small"] = says(answer(200, b"x"))
    server.handlers["/large"] = says(answer(200, bytes(100 * MiB)))
    params = {"download": "file"}
    _, before = await measured(tmp_path / "1", {"url": f"{server.url}/small", **params})
    done, most = await measured(tmp_path / "2", {"url": f"{server.url}/large", **params})
    assert done.code == 0
    assert (tmp_path / "2" / "file").stat().st_size == 100 * MiB
    assert most - before <= 5 * MiB, f"{(most - before) / MiB:.1f} MiB more"


async def test_expression_that_never_ends_is_stopped(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer(200, "a" * 60 + "!"))
    done = await run(tmp_path, {"url": server.url, "success": {"matches": "(a+)+$"}})
    assert done.code == 65
    assert "regular expression takes too long" in str(done.reason)


async def test_silent_name_server_holds_nothing_up(
    server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence = asyncio.Event()
    loop = asyncio.get_running_loop()

    def look_up(*arguments: Any, **options: Any) -> Any:
        asyncio.run_coroutine_threadsafe(silence.wait(), loop).result()
        raise OSError("too late")

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    done = await run(tmp_path, {"url": "http://slow.example.org/", "timeout": "300ms"})
    silence.set()
    assert done.code == 1
    assert "connecting to slow.example.org" in str(done.reason)


async def test_full_disk_is_named(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer(200, "x"))
    (tmp_path / "answer").mkdir()  # stands for it: no file can be made there
    done = await run(tmp_path, {"url": server.url})
    assert done.code == 1
    assert str(done.reason).startswith("cannot store the body: ")
