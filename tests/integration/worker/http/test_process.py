"""The process of an attempt: cancelled at once, and what it leaves for the agent."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from shoal.worker.types.child.outcome import CANCELLED, is_settled
from tests.integration.worker.http.kit import Attempt, dripping, never, run_process
from tests.support.servers.http_server import Handler, HttpServer, answer, says
from tests.support.waiting import eventually


async def test_whole_way_of_a_request(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer(200, '{"id": 7}'))
    done = await run_process(tmp_path, {"url": server.url, "outputs": {"id": "$.id"}})
    assert (done.code, done.outputs, done.reason) == (0, {"id": "7"}, None)
    assert done.log.splitlines() == [
        f"GET {server.url} (accept, user-agent)",
        "200 Status-200, 9 bytes",
    ]


async def test_reason_of_a_failure_is_left_without_secrets(
    server: HttpServer, tmp_path: Path
) -> None:
    server.handlers["/"] = says(answer(200, '{"word": "hush-hush"}'))
    params = {"url": server.url, "success": {"json": {"$.word": "hush"}}}
    done = await run_process(tmp_path, params, secrets={"word": "hush-hush"})
    assert done.code == 1
    assert done.reason == '$.word is "***", not "hush"'
    assert done.log.splitlines()[-1] == f"shoal: {done.reason}"
    assert "hush-hush" not in done.log


@pytest.mark.parametrize(
    "handler", [never, dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")]
)
@pytest.mark.parametrize(
    "params", [{}, {"poll": {"until": {"status": [200]}, "every": "50s"}, "method": "HEAD"}]
)
async def test_cancelled_at_once_and_settled(
    server: HttpServer, tmp_path: Path, handler: Handler, params: dict[str, Any]
) -> None:
    """Also between two requests: the answer to HEAD has no body to wait for."""
    server.handlers["/"] = handler if not params else says(answer(404))
    attempt = Attempt(tmp_path)
    await attempt.start({"url": server.url, "timeout": "1h", **params})
    await eventually(lambda: server.received)
    attempt.process.send_signal(signal.SIGTERM)
    done = await attempt.ended()
    assert done.code == CANCELLED
    assert (done.reason, done.outputs) == (None, {})
    assert "shoal: cancelling" in done.log.splitlines()
    assert is_settled(tmp_path)
    await eventually(lambda: server.open == 0)


async def test_killed_process_leaves_no_connection(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    attempt = Attempt(tmp_path)
    await attempt.start({"url": server.url, "timeout": "1h"})
    await eventually(lambda: server.received)
    attempt.process.kill()
    assert (await attempt.ended()).code == -signal.SIGKILL
    await eventually(lambda: server.open == 0)


async def test_progress_of_a_download_is_told(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    attempt = Attempt(tmp_path)
    await attempt.start({"url": server.url, "download": "file", "timeout": "1h"})
    await eventually(lambda: (tmp_path / "progress.json").exists())
    told = await asyncio.to_thread((tmp_path / "progress.json").read_text)
    assert {key: json.loads(told)[key] for key in ("total", "unit")} == {
        "total": 1000,
        "unit": "bytes",
    }
    attempt.process.kill()
    await attempt.ended()
