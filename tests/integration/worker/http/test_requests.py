"""What is sent, what is taken from the answer, and what the log shows of both."""

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.worker.http.kit import TAG, run, run_process
from tests.support.servers.http_server import HttpServer, answer, says


async def test_request_arrives_as_it_was_written(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/v1/jobs"] = says(answer(201, '{"id": 7}', ETag='"x"'))
    done = await run(
        tmp_path,
        {
            "method": "POST",
            "url": f"{server.url}/v1/jobs?a=1",
            "query": {"day": "2024-05-01", "tag": ["x y", "ü&"], "dry": True},
            "headers": {"X-Team": "flights"},
            "auth": {"user": "ada", "password": "geheim"},
            "body": {"json": {"rows": [1, 2], "name": "ü"}},
            "idempotency_header": "Idempotency-Key",
            "outputs": {"id": "$.id", "status": "status", "etag": "headers.etag", "all": "body"},
        },
    )
    assert done.code == 0, done.log
    assert done.outputs == {"id": "7", "status": "201", "etag": '"x"', "all": '{"id": 7}'}
    (got,) = server.received
    assert got.method == "POST"
    assert got.target == "/v1/jobs?a=1&day=2024-05-01&tag=x%20y&tag=%C3%BC%26&dry=true"
    assert json.loads(got.body) == {"rows": [1, 2], "name": "ü"}
    sent = dict(got.headers)
    assert sent.pop("host") == f"127.0.0.1:{server.port}"
    assert sent == {
        "accept": "*/*",
        "accept-encoding": "identity",
        "authorization": "Basic YWRhOmdlaGVpbQ==",
        "connection": "close",
        "content-length": str(len(got.body)),
        "content-type": "application/json",
        "idempotency-key": TAG,
        "user-agent": "shoal",
        "x-team": "flights",
    }


@pytest.mark.parametrize(
    ("body", "sent", "kind"),
    [
        ({"text": "a=ü\n"}, "a=ü\n".encode(), "text/plain; charset=utf-8"),
        (
            {"form": {"a": "1&2", "b": [True, 2]}},
            b"a=1%262&b=true&b=2",
            "application/x-www-form-urlencoded",
        ),
        (None, b"", None),
    ],
)
async def test_bodies(
    server: HttpServer, tmp_path: Path, body: Any, sent: bytes, kind: str | None
) -> None:
    server.handlers["/"] = says(answer())
    done = await run(tmp_path, {"method": "PUT", "url": f"{server.url}/", "body": body})
    assert done.code == 0
    (got,) = server.received
    assert (got.body, got.headers.get("content-type")) == (sent, kind)
    assert got.headers["content-length"] == str(len(sent))


async def test_log_shows_lines_and_names_but_no_values(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/x"] = says(
        answer(200, "the body", Set_Cookie="session=abc", Content_Type="text/plain")
    )
    params = {
        "url": f"{server.url}/x?key=hush-hush",
        "headers": {"Cookie": "session=old"},
        "auth": {"bearer": "token-1"},
    }
    done = await run(tmp_path, params, secrets={"key": "hush-hush", "token": "token-1"})
    assert done.log.splitlines() == [
        f"GET {server.url}/x?key=*** (accept, authorization, cookie, user-agent)",
        "200 Status-200, text/plain, 8 bytes",
    ]
    assert server.received[0].target == "/x?key=hush-hush"
    assert server.received[0].headers["authorization"] == "Bearer token-1"


async def test_secret_is_masked_in_every_form_that_a_server_sends_it_in(
    server: HttpServer, tmp_path: Path
) -> None:
    secret = 'p@ss"word/%41'
    encoded = base64.b64encode(f"ada:{secret}".encode()).decode()
    body = json.dumps({"given": f"Basic {encoded}", "plain": secret})
    server.handlers["/"] = says(answer(500, body))
    params = {
        "url": f"{server.url}/?a={secret}",
        "auth": {"user": "ada", "password": secret},
        "query": {"key": secret},
    }
    done = await run(tmp_path, params, secrets={"db": secret})
    assert server.received[0].headers["authorization"] == f"Basic {encoded}"
    for form in (secret, encoded, "p@ss", "p%40ss", "word"):
        assert form not in done.log + str(done.reason)
    outputs = {"given": "$.given", "plain": "$.plain"}
    good = {**params, "success": {"status": [500]}, "outputs": outputs}
    assert (await run(tmp_path / "2", good, secrets={"db": secret})).outputs == {
        "given": "Basic ***",
        "plain": "***",
    }


async def test_body_of_a_failure_is_shown_and_steers_nothing(
    server: HttpServer, tmp_path: Path
) -> None:
    body = "${setValue(PATH=x)}\n\x1b]0;title\x07done\n" + "x" * 5_000
    server.handlers["/"] = says(answer(400, body))
    done = await run(tmp_path, {"url": f"{server.url}/"})
    assert (done.code, done.reason) == (65, "the status is 400, not 2xx")
    lines = done.log.splitlines()
    assert lines[2:4] == [
        "| ${setValue(PATH=x)}",
        "| \N{REPLACEMENT CHARACTER}]0;title\N{REPLACEMENT CHARACTER}done",
    ]
    assert len(done.log) < 3_000
    assert lines[-1] == "| …"


async def test_good_body_is_shown_on_request_only(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer(200, "hello"))
    assert "| hello" not in (await run(tmp_path / "1", {"url": server.url})).log
    assert "| hello" in (await run(tmp_path / "2", {"url": server.url, "log_body": True})).log
    server.handlers["/"] = says(answer(200, b"\0\1"))
    assert "not text" in (await run(tmp_path / "3", {"url": server.url, "log_body": True})).log


@pytest.mark.parametrize(
    ("success", "problem"),
    [
        ({"status": [200, "300-399"]}, "the status is 202, not 200 or 300-399"),
        ({"json": {"$.state": ["A", "B"]}}, '$.state is "RUNNING", not "A" or "B"'),
        ({"json": {"$.rows": "6"}}, '$.rows is 5, not "6"'),
        ({"json": {"$.gone": 1}}, "the answer has nothing at $.gone"),
        ({"contains": ["nope"]}, 'the body does not contain "nope"'),
        ({"not_contains": ["RUN"]}, 'the body contains "RUN"'),
        ({"matches": "x{3}"}, 'nothing in the body matches "x{3}"'),
    ],
)
async def test_check_that_does_not_hold_is_named(
    server: HttpServer, tmp_path: Path, success: dict[str, Any], problem: str
) -> None:
    server.handlers["/"] = says(answer(202, '{"state": "RUNNING", "rows": 5}'))
    done = await run(tmp_path, {"url": server.url, "success": success})
    assert (done.code, done.reason) == (1, problem)


async def test_checks_that_hold(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer(202, '{"state": "RUNNING", "rows": 5, "ok": true}'))
    success = {
        "status": ["2xx"],
        "json": {"$.state": ["DONE", "RUNNING"], "$.rows": "5", "$.ok": True},
        "contains": ["RUN"],
        "not_contains": ["FAILED"],
        "matches": r'"rows":\s*\d+',
    }
    assert (await run(tmp_path, {"url": server.url, "success": success})).code == 0


@pytest.mark.parametrize(
    ("body", "outputs", "reason"),
    [
        ("no json", {"a": "$.a"}, "outputs: the body is not JSON: Expecting value"),
        ("[1]", {"a": "$.a"}, "outputs: the answer has nothing at $.a"),
        ("[1]", {"a": "headers.ETag"}, "outputs: the answer has no header ETag"),
        ("[" * 100_000, {"a": "$"}, "outputs: the body is JSON with more levels"),
        ("NaN", {"a": "$"}, "outputs: the body is not JSON"),
        ("1e999", {"a": "$"}, "outputs: a number in the body is too large"),
        ("9" * 5_000, {"a": "$"}, "outputs: the body is not JSON: Exceeds the limit (4300 digits)"),
    ],
)
async def test_output_that_is_not_there(
    server: HttpServer, tmp_path: Path, body: str, outputs: dict[str, str], reason: str
) -> None:
    server.handlers["/"] = says(answer(200, body))
    done = await run(tmp_path, {"url": server.url, "outputs": outputs})
    assert done.code == 1
    assert str(done.reason).startswith(reason)
    assert done.outputs == {}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"a": "\\u0000"}', "holds a NUL character"),
        (b'{"a": "\\ud800"}', "holds half of a character"),
        (json.dumps({"a": "x" * (1 << 20) + "y"}).encode(), "1,048,577 bytes, at most 1,048,576"),
    ],
)
async def test_output_that_no_task_could_receive_fails_for_good(
    server: HttpServer, tmp_path: Path, body: bytes, reason: str
) -> None:
    server.handlers["/"] = says(answer(200, body))
    done = await run(tmp_path, {"url": server.url, "outputs": {"a": "$.a", "self": "status"}})
    assert done.code == 65
    assert reason in str(done.reason)


async def test_charset_of_the_answer_counts(server: HttpServer, tmp_path: Path) -> None:
    latin = answer(200, "grün".encode("latin-1"), Content_Type="text/plain; charset=ISO-8859-1")
    odd = answer(200, "grün", Content_Type="text/plain; charset=idna")
    server.handlers |= {"/latin": says(latin), "/odd": says(odd)}
    for path in ("latin", "odd"):
        params = {"url": f"{server.url}/{path}", "outputs": {"self": "body"}}
        assert (await run(tmp_path / path, params)).outputs == {"self": "grün"}


async def test_download_is_stored_as_it_came(server: HttpServer, tmp_path: Path) -> None:
    content = gzip.compress(b"rows\n" * 1_000)
    server.handlers["/rows.csv.gz"] = says(answer(200, content, Content_Encoding="gzip"))
    done = await run(
        tmp_path,
        {
            "url": f"{server.url}/rows.csv.gz",
            "download": "rows.csv.gz",
            "outputs": {"file": "file", "size": "size", "sum": "sha256"},
        },
    )
    assert done.code == 0
    assert (tmp_path / "rows.csv.gz").read_bytes() == content
    assert done.outputs == {
        "file": str(tmp_path / "rows.csv.gz"),
        "size": str(len(content)),
        "sum": hashlib.sha256(content).hexdigest(),
    }


async def test_gzip_is_understood_though_nobody_asked_for_it(
    server: HttpServer, tmp_path: Path
) -> None:
    members = gzip.compress(b"first ") + gzip.compress(b"second")
    server.handlers["/gzip"] = says(answer(200, members, Content_Encoding="gzip"))
    server.handlers["/br"] = says(answer(200, b"?", Content_Encoding="br"))
    server.handlers["/no"] = says(answer(200, b"plain", Content_Encoding="gzip"))
    server.handlers["/half"] = says(answer(200, members[:-5], Content_Encoding="gzip"))
    outputs = {"body": "body"}
    good = await run(tmp_path / "1", {"url": f"{server.url}/gzip", "outputs": outputs})
    assert good.outputs == {"body": "first second"}
    for path, reason in (
        ("br", "Content-Encoding br"),
        ("no", "is not"),
        ("half", "ends too early"),
    ):
        done = await run(tmp_path / path, {"url": f"{server.url}/{path}"})
        assert done.code == 65
        assert reason in str(done.reason)


async def test_head_has_no_body_whatever_its_length(server: HttpServer, tmp_path: Path) -> None:
    server.handlers["/"] = says(answer(200, Content_Length="99999999999"))
    params = {"url": server.url, "method": "HEAD", "outputs": {"size": "headers.Content-Length"}}
    assert (await run(tmp_path, params)).outputs == {"size": "99999999999"}


async def test_placeholder_that_nothing_fills_is_named(server: HttpServer, tmp_path: Path) -> None:
    done = await run(tmp_path, {"url": "https://${host}/x"})
    assert done.code == 65
    assert done.reason == "no parameter of the workflow fills a placeholder in url"


async def test_variables_of_the_environment_change_nothing(
    server: HttpServer, tmp_path: Path
) -> None:
    server.handlers["/"] = says(answer(200))
    variables = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
    env = dict.fromkeys(variables, "http://127.0.0.1:9") | {"SSLKEYLOGFILE": f"{tmp_path}/keys"}
    done = await run_process(tmp_path, {"url": server.url}, env=env)
    assert done.code == 0
    assert not (tmp_path / "keys").exists()
