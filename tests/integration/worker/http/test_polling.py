"""Asking again until something is true: the condition, the end of patience, and odd answers."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.http.kit import run
from tests.support.servers.http_server import HttpServer, Received, answer, says

UNTIL_DONE = {"until": {"json": {"$.state": ["DONE", "FAILED"]}}, "every": "10ms"}
RUNNING, DONE = answer(200, '{"state": "RUNNING"}'), answer(200, '{"state": "DONE", "rows": 7}')


def polling(url: str, **params: Any) -> dict[str, Any]:
    return {"url": url, "timeout": "60s", "poll": UNTIL_DONE, **params}


async def test_asks_until_it_is_true(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(RUNNING, RUNNING, RUNNING, DONE)
    success = {"json": {"$.state": "DONE"}}
    done = await run(tmp_path, polling(server.url, success=success, outputs={"rows": "$.rows"}))
    assert (done.code, done.outputs) == (0, {"rows": "7"})
    assert len(server.received) == 4
    assert done.log.count("RUNNING") == 1  # the same again is not worth a line
    server.handlers["/"] = says(RUNNING, answer(200, '{"state": "FAILED"}'))
    failed = await run(tmp_path / "2", polling(server.url, success=success))
    assert (failed.code, failed.reason) == (1, '$.state is "FAILED", not "DONE"')


async def test_what_passes_does_not_end_it(server: HttpServer, tmp_path: Path) -> None:
    answers = iter([b"", answer(503), answer(429, Retry_After="0"), b"HTTP/1.1 200", RUNNING, DONE])

    async def odd(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(next(answers))

    server.handlers["/"] = odd
    assert (await run(tmp_path, polling(server.url))).code == 0
    assert next(answers, None) is None


async def test_service_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    async with HttpServer() as server:
        port = server.port
    task = asyncio.create_task(run(tmp_path, polling(f"http://127.0.0.1:{port}/")))
    await asyncio.sleep(0.3)
    assert not task.done()
    async with HttpServer({"/": says(DONE)}, port=port):
        assert (await task).code == 0


async def test_error_that_will_not_pass_ends_it(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(RUNNING, answer(403, "no"))
    done = await run(tmp_path, polling(server.url))
    assert done.code == 65
    assert "poll: the status is 403" in str(done.reason)
    assert "| no" in done.log


async def test_condition_on_the_status_expects_errors(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer(404), answer(404), answer(200))
    until = {"until": {"status": [200]}, "every": 0.01}
    assert (await run(tmp_path / "1", polling(server.url, poll=until))).code == 0
    server.handlers["/"] = says(answer(200), answer(404))
    gone = {"until": {"status": [404]}, "every": 0.01}
    assert (await run(tmp_path / "2", polling(server.url, poll=gone))).code == 0


async def test_patience_ends(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(RUNNING)
    at_most = await run(tmp_path / "1", polling(server.url, poll={**UNTIL_DONE, "at_most": 3}))
    assert at_most.code == 1
    assert at_most.reason == (
        'poll: asked 3 times, and still $.state is "RUNNING", not "DONE" or "FAILED"'
    )
    assert len(server.received) == 3
    late = await run(tmp_path / "2", polling(server.url, timeout="700ms"))
    assert late.code == 1
    assert str(late.reason).startswith("not done within 700ms: ")
    assert '$.state is "RUNNING"' in str(late.reason)


async def test_server_may_ask_for_a_longer_wait(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer(429, Retry_After="3600"), DONE)
    done = await run(tmp_path, polling(server.url, timeout="500ms"))
    assert done.code == 1
    assert len(server.received) == 1


async def test_work_is_submitted_once_and_its_place_asked(
    server: HttpServer, tmp_path: Path
) -> None:
    server.handlers |= {
        "/jobs": says(answer(202, '{"links": {"self": "/jobs/7"}}', Location="/jobs/7")),
        "/jobs/7": says(RUNNING, RUNNING, DONE),
    }
    for number, url_from in enumerate(("headers.Location", "$.links.self")):
        server.received.clear()
        server.handlers["/jobs/7"] = says(RUNNING, RUNNING, DONE)
        poll = {**UNTIL_DONE, "url_from": url_from}
        params = {"method": "POST", "body": {"json": {"a": 1}}, "auth": {"bearer": "t"}}
        url = f"{server.url}/jobs"
        done = await run(tmp_path / str(number), polling(url, poll=poll, **params))
        assert done.code == 0, done
        assert [(r.method, r.target, r.body) for r in server.received] == [
            ("POST", "/jobs", b'{"a": 1}'),
            *[("GET", "/jobs/7", b"")] * 3,
        ]
        assert {r.headers["authorization"] for r in server.received} == {"Bearer t"}


@pytest.mark.parametrize(
    ("first", "then", "code", "reason"),
    [
        (answer(202), DONE, 65, "url_from: the answer has no header Location"),
        (answer(500, Location="/x"), DONE, 65, "the status is 500"),
        (answer(429, Location="/x"), DONE, 1, "the status is 429"),
        (answer(302, Location="/x"), DONE, 65, "the status is 302"),
        (answer(202, Location="/x"), RUNNING, 65, "asked 2 times"),
        (answer(202, Location="//169.254.169.254/"), DONE, 65, "link-local"),
        (answer(202, Location="ftp://x/"), DONE, 65, "no http or https URL"),
    ],
)
async def test_post_is_never_repeated_because_polling_failed(
    server: HttpServer, tmp_path: Path, first: bytes, then: bytes, code: int, reason: str
) -> None:
    server.handlers |= {"/": says(first), "/x": says(then)}
    poll = {**UNTIL_DONE, "url_from": "headers.Location", "at_most": 2}
    done = await run(tmp_path, polling(server.url, method="POST", poll=poll))
    assert done.code == code
    assert reason in str(done.reason)
    assert [r.method for r in server.received].count("POST") == 1
