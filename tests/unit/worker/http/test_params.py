"""Params of HTTP tasks: what is refused when a definition is saved, and with which words."""

from typing import Any

import pytest
from pydantic import ValidationError

from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.task_types import CommandLine, Verbatim, fields_marked
from shoal.runtime.plugins import check_definition, load_task_type
from shoal.worker.types.http.kind import Http, HttpParams, statuses

URL = "https://api.example.org/v1/jobs"
POLL = {"until": {"status": [200]}, "every": "5s"}


def params(**fields: Any) -> HttpParams:
    return HttpParams.model_validate({"url": URL, **fields})


def refusal(**fields: Any) -> str:
    with pytest.raises(ValidationError) as error:
        params(**fields)
    return str(error.value)


def test_type_is_installed() -> None:
    assert load_task_type("HTTP") is Http
    assert Http.permanent_exit_codes == {65}
    assert HttpParams.model_json_schema()["properties"].keys() == HttpParams.model_fields.keys()


def test_defaults() -> None:
    plain = params()
    assert (plain.method, plain.timeout, plain.follow_redirects) == ("GET", 60.0, 0)
    assert plain.most_bytes == 10 << 20
    assert params(download="x").most_bytes == 1 << 30


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": "ftp://example.org/"}, "expected a URL such as https://"),
        ({"url": "/relative"}, "expected a URL such as https://"),
        ({"url": "https:///x"}, "expected a URL such as https://"),
        ({"url": "https://ada:pw@example.org/"}, "give them in auth"),
        ({"url": "https://example.org/a b"}, "must not contain blanks"),
        ({"url": "https://example.org/\r\nX: y"}, "must not contain blanks"),
        ({"url": "https://example.org:port/"}, "is not a URL"),
        ({"url": "https://[::1/"}, "is not a URL"),
        ({"method": "TRACE"}, "method"),
        ({"headers": {"X Y": "z"}}, "'X Y' is not a name of a header"),
        ({"headers": {"X": "a\r\nEvil: b"}}, "printable ASCII"),
        ({"headers": {"X": "ü"}}, "printable ASCII"),
        ({"headers": {"Host": "other"}}, "Host cannot be set by a task"),
        ({"headers": {"content-length": "5"}}, "content-length cannot be set by a task"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "cannot be set by a task"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "the header x-a is given twice"),
        ({"headers": {"Authorization": "x"}, "auth": {"bearer": "y"}}, "given twice"),
        ({"headers": {"Key": "x"}, "idempotency_header": "key"}, "given twice"),
        ({"idempotency_header": "a b"}, "not a name of a header"),
        ({"auth": {}}, "give either user and password, or bearer"),
        ({"auth": {"user": "a", "bearer": "b"}}, "give either user and password, or bearer"),
        ({"auth": {"password": "b", "bearer": "b"}}, "bearer has no password"),
        ({"auth": {"user": "a:b", "password": "c"}}, "no colon"),
        ({"auth": {"user": "a", "password": "c\n"}}, "control characters"),
        ({"auth": {"bearer": "c\r\nX: y"}}, "control characters"),
        ({"body": {}}, "give exactly one of text, json and form"),
        ({"body": {"text": "a", "json": 1}}, "give exactly one of text, json and form"),
        ({"body": {"xml": "a"}}, "body.xml"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"success": {"status": []}}, "no status is in it"),
        ({"success": {"status": ["6xx"]}}, "expected a status such as 200"),
        ({"success": {"status": ["300-200"]}}, "no status is in it"),
        ({"success": {"status": [True]}}, "expected a status such as 200"),
        ({"success": {"json": {"state": 1}}}, "is not a JSON path"),
        ({"success": {"matches": "("}}, "is not a regular expression"),
        ({"success": {"matches": "x" * 1_001}}, "at most 1000 characters"),
        ({"outputs": {"a b": "status"}}, "outputs"),
        ({"outputs": {"PATH": "status"}}, "'PATH' is reserved"),
        ({"outputs": {"a": "heders.X"}}, "is nothing of an answer"),
        ({"outputs": {"a": "$.x["}}, "is not a JSON path"),
        ({"outputs": {"a": "sha256"}}, "are of a download"),
        ({"download": "../x"}, "expected a file name"),
        ({"download": "a/b"}, "expected a file name"),
        ({"download": ".x"}, "expected a file name"),
        ({"download": "output"}, "a file of Shoal's own"),
        ({"download": "x", "outputs": {"a": "$.x"}}, "a download is not read"),
        ({"download": "x", "success": {"contains": ["a"]}}, "a download is not read"),
        ({"download": "x", "poll": POLL, "timeout": "1m"}, "use two tasks"),
        ({"max_body": "65 MiB"}, "more than 64 MiB needs download"),
        ({"max_body": "5 MB"}, "max_body"),
        ({"max_body": 0}, "max_body"),
        ({"follow_redirects": 21}, "follow_redirects"),
        ({"ca_certificate": "/etc/ssl/ca.pem"}, "expected PEM text"),
        ({"poll": POLL}, "poll needs a timeout"),
        ({"poll": POLL, "timeout": "5s"}, "every must be shorter than timeout"),
        ({"poll": {"until": {}}, "timeout": "1m"}, "until is empty"),
        ({"poll": {**POLL, "url_from": "status"}, "timeout": "1m"}, "url_from is a header"),
        ({"poll": POLL, "timeout": "1m", "method": "POST"}, "poll would send the POST again"),
        ({"verify": False}, "verify"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], words: str) -> None:
    assert words in refusal(**fields)


def test_no_error_shows_a_value() -> None:
    """It could be a secret, rendered: errors are logged and stored."""
    secret = "hush-hush"
    for fields in (
        {"url": f"ftp://{secret}/"},
        {"headers": {"X": f"{secret}\n"}},
        {"auth": {"user": "a", "password": f"{secret}\n"}},
        {"auth": {"bearer": f"{secret}ü"}},
        {"body": {"text": secret, "json": secret}},
        {"query": {"key": {"a": secret}}},
        {"success": {"matches": f"({secret}"}},
    ):
        assert secret not in refusal(**fields), fields


def test_placeholders_are_judged_when_they_are_rendered() -> None:
    for fields in (
        {"url": "${base}/x"},
        {"url": "https://example.org/$[yyyyMMdd]"},
        {"ca_certificate": "${ca}"},
        {"success": {"matches": "${word}("}},
        {"headers": {"X": "${value}"}},
    ):
        params(**fields)


def test_secrets_are_welcome_everywhere() -> None:
    assert not fields_marked(HttpParams, CommandLine)
    assert not fields_marked(HttpParams, Verbatim)
    task = {
        "name": "ask",
        "type": "HTTP",
        "params": {
            "url": URL,
            "auth": {"user": "ada", "password": "${secret.api}"},
            "headers": {"X-Key": "${secret.key}"},
        },
    }
    check_definition({"name": "w", "tasks": [task]})
    with pytest.raises(InvalidDefinition, match="expected a URL"):
        check_definition({"name": "w", "tasks": [{**task, "params": {"url": "x"}}]})


def test_params_survive_the_way_to_the_process() -> None:
    given = params(
        method="POST",
        body={"json": {"a": [1, None, "${x}"]}},
        query={"a": ["b", 1]},
        success={"status": [200, "3xx"], "json": {"$.a": [1, "x"]}},
        poll={**POLL, "url_from": "headers.Location"},
        timeout="1h",
        max_body="2 KiB",
    )
    assert HttpParams.model_validate(given.model_dump(mode="json")) == given
    assert given.max_body == 2_048


def test_one_of_a_kind_needs_no_list() -> None:
    one = params(success={"status": "2xx", "contains": "a", "not_contains": "b"})
    assert one == params(success={"status": ["2xx"], "contains": ["a"], "not_contains": ["b"]})
    assert params(success={"status": 204}).success.status == ("204",)


@pytest.mark.parametrize(
    ("fields", "idempotent"),
    [
        ({}, True),
        ({"method": "DELETE"}, True),
        ({"method": "POST"}, False),
        ({"method": "PATCH"}, False),
        ({"method": "POST", "idempotent": True}, True),
        ({"method": "POST", "idempotency_header": "Idempotency-Key"}, True),
        ({"method": "POST", "idempotency_header": "K", "idempotent": False}, False),
        ({"idempotent": False}, False),
    ],
)
def test_what_may_be_repeated(fields: dict[str, Any], idempotent: bool) -> None:
    assert params(**fields).is_idempotent is idempotent


@pytest.mark.parametrize(
    ("text", "first", "last"), [("2xx", 200, 299), ("404", 404, 404), ("500-503", 500, 503)]
)
def test_statuses(text: str, first: int, last: int) -> None:
    assert (statuses(text)[0], statuses(text)[-1]) == (first, last)
