"""What a failure means for another attempt, what is equal, and what the log may show."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from shoal.worker.types.child.outcome import PERMANENT
from shoal.worker.types.http.answer import HttpAnswer
from shoal.worker.types.http.checks import SearchTooSlow, found_in, missed, same
from shoal.worker.types.http.disclosure import PREVIEW, Shown
from shoal.worker.types.http.failures import Fate, may_pass, retry_after
from shoal.worker.types.http.kind import AnswerChecks, Auth

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("idempotent", "sent", "status", "passes", "permanent"),
    [
        (True, True, None, True, False),
        (True, True, None, False, True),
        (False, False, None, True, False),
        (False, True, None, True, True),
        (False, True, 500, True, True),
        (False, True, 429, True, False),
        (False, True, 307, True, False),
        (False, False, None, False, True),
    ],
)
def test_fate(
    idempotent: bool, sent: bool, status: int | None, passes: bool, permanent: bool
) -> None:
    fate = Fate(is_idempotent=idempotent)
    if sent:
        fate.sent()
    if status is not None:
        fate.answered(status)
    assert (fate.failure("x", may_pass=passes).exit_code == PERMANENT) is permanent


@pytest.mark.parametrize(
    ("idempotent", "status", "noted"),
    [(False, None, True), (False, 500, True), (False, 429, False), (True, None, False)],
)
def test_fate_outlives_the_process(idempotent: bool, status: int | None, noted: bool) -> None:
    notes: list[str | None] = [None]
    fate = Fate(is_idempotent=idempotent, note=notes.append)
    fate.sent()
    if status is not None:
        fate.answered(status)
    assert (notes[-1] is not None) is noted


def test_statuses_that_may_pass() -> None:
    assert [s for s in (202, 304, 400, 404, 408, 425, 429, 500, 503, 599) if may_pass(s)] == [
        *(202, 408, 425, 429),
        *(500, 503, 599),
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        ("99999999", 86_400.0),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60.0),
        ("Thu, 01 Jan 2026 00:01:00 -0000", 60.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0),
        ("-1", None),
        ("1e9", None),
        ("soon", None),
        ("", None),
        ("٣", None),
        ("9" * 5_000, None),
    ],
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}, NOW) == seconds


@pytest.mark.parametrize(
    ("found", "wanted", "equal"),
    [
        (5, 5, True),
        (5, "5", True),
        (5.0, 5, True),
        ("5", 5, False),
        (True, True, True),
        (True, "true", True),
        (True, 1, False),
        (1, True, False),
        (None, None, True),
        (None, "", False),
        ([1, {"a": 2}], [1, {"a": 2}], True),
        ("a", "a", True),
    ],
)
def test_equality(found: Any, wanted: Any, equal: bool) -> None:
    assert same(found, wanted) is equal


def answer_of(folder: Path, body: bytes, status: int = 200, **headers: str) -> HttpAnswer:
    file = folder / "answer"
    file.write_bytes(body)
    return HttpAnswer(status, "OK", headers, file, len(body))


def test_default_statuses_count_only_where_there_are_some(tmp_path: Path) -> None:
    answer = answer_of(tmp_path, b"{}", 404)
    assert missed(AnswerChecks(), answer) is None
    assert missed(AnswerChecks(), answer, ("2xx",)) == "the status is 404, not 2xx"
    assert missed(AnswerChecks(status=("404",)), answer, ("2xx",)) is None


def test_list_is_wanted_as_one_of_a_list(tmp_path: Path) -> None:
    answer = answer_of(tmp_path, b'{"a": [1, 2]}')
    assert missed(AnswerChecks(json_={"$.a": [[1, 2]]}), answer) is None
    assert missed(AnswerChecks(json_={"$.a": [1, 2]}), answer) == "$.a is [1, 2], not 1 or 2"


def test_slow_search_ends_and_a_quick_one_is_not_disturbed() -> None:
    assert found_in("b+$", "aabb")
    with pytest.raises(SearchTooSlow):
        found_in("(a+)+$", "a" * 60 + "!", limit_s=0.2)
    assert not found_in("c", "aabb", limit_s=0.2)


def test_url_is_shown_as_people_write_it() -> None:
    shown = Shown.of(["to/ken %41"], Auth(user="ada", password="p@ss"))
    url = httpx.URL("https://u:p@api.example.org/ü x/to%2Fken%20%2541?a=p%40ss&b=%0A%1B[1m")
    assert shown.url(url) == (
        "https://api.example.org/ü x/***?a=***&b="
        "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[1m"
    )


def test_secret_at_the_end_of_the_preview_is_not_cut(tmp_path: Path) -> None:
    body = b"x" * (PREVIEW - 5) + b"hush-hush-hush" + b"y" * 100
    lines = list(Shown(["hush-hush-hush"]).preview(answer_of(tmp_path, body)))
    assert not any("hush" in line for line in lines)
    assert len(lines[0]) <= PREVIEW + 2


def test_basic_authentication_is_a_secret_too(tmp_path: Path) -> None:
    shown = Shown.of([], Auth(user="ada", password="geheim"))
    assert shown.masked("Basic YWRhOmdlaGVpbQ== and YWRhOmdlaGVpbQ") == "Basic *** and ***"
