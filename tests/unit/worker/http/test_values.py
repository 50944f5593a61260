"""JSON paths and the names of what an answer holds."""

from typing import Any

import pytest

from shoal.worker.types.http import json_path
from shoal.worker.types.http.values import AnswerPart, Source

VALUE = {
    "job": {"id": 7, "odd name": [None], "x-y": "z"},
    "items": [{"n": 1}, {"n": 2}, {"m": 3}],
    "empty": [],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", VALUE),
        ("$.job.id", 7),
        ("$.job.x-y", "z"),
        ('$.job["odd name"][0]', None),
        ("$.job['odd name'][0]", None),
        ("$.items[0].n", 1),
        ("$.items[-2].n", 2),
        ("$.items[*].n", [1, 2]),
        ("$.items[*].gone", []),
        ("$.empty[*]", []),
        ("$.job[*]", [7, [None], "z"]),
    ],
)
def test_paths(path: str, found: Any) -> None:
    assert json_path.find(VALUE, path) == found


@pytest.mark.parametrize(
    "path", ["$.gone", "$.items[3]", "$.items[-4]", "$.items.n", "$.job[0]", "$.job.id.x"]
)
def test_nothing_there(path: str) -> None:
    with pytest.raises(LookupError):
        json_path.find(VALUE, path)


@pytest.mark.parametrize(
    "path",
    [
        *("", "job", "$x", "$.", "$..a", "$.a[", "$[a]", "$.a[?@.b]", "$.a[1:2]", '$["\\x"]'),
        *("$" * 9, "$" + ".a" * 300),
    ],
)
def test_no_paths(path: str) -> None:
    with pytest.raises(ValueError, match=r"JSON path|as in JSON"):
        json_path.parse(path)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("status", Source(AnswerPart.STATUS)),
        ("body", Source(AnswerPart.BODY)),
        ("headers.ETag", Source(AnswerPart.HEADER, "ETag")),
        ("$.job.id", Source(AnswerPart.JSON, "$.job.id")),
        ("sha256", Source(AnswerPart.SHA256)),
    ],
)
def test_sources(text: str, source: Source) -> None:
    assert Source.read(text) == source


@pytest.mark.parametrize("text", ["", "json", "header", "headers.", "headers.a b", "Status"])
def test_no_sources(text: str) -> None:
    with pytest.raises(ValueError, match="is nothing of an answer"):
        Source.read(text)
