"""What WAIT_FILE and WAIT_SQL accept, where they may look, and how their looks grow apart."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from shoal.worker.types.child.outcome import NOT_YET, WorkFailed
from shoal.worker.types.wait.kind import WaitFile, WaitFileParams, WaitSql, WaitSqlParams
from shoal.worker.types.wait.local import fixed_part
from shoal.worker.types.wait.roots import Roots


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "exactly one of"),
        ({"path": "/a", "url": "http://h/a"}, "exactly one of"),
        ({"path": "in/a.csv"}, "not an absolute path"),
        ({"path": "/in/../etc/x"}, "must not contain `..`"),
        ({"url": "ftp://h/a"}, "must begin with one of"),
        ({"url": "http://h/a", "at_least": 2}, "one file"),
        ({"path": "/a", "at_least": 2}, "names one file"),
        ({"path": "/a", "newer_than": "yesterday"}, "is not a time"),
        ({"path": "/a", "every": "0.5s"}, "greater than or equal to 1"),
        ({"path": "/a", "every": "8d"}, "less than or equal to"),
        ({"path": "/a", "every": "5m", "every_max": "1m"}, "shorter than"),
        ({"path": "/a", "back_off": 0.5}, "greater than or equal to 1"),
        ({"path": "/a", "pattern": "x"}, "Extra inputs"),
    ],
)
def test_mistakes_are_refused_when_the_workflow_is_published(
    fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        WaitFileParams.model_validate(fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "/in/$[yyyyMMdd]/*.csv", "newer_than": "$[yyyy-MM-dd]", "at_least": 3},
        {"path": "${folder}/x", "at_least": 2},
        {"url": "s3://bucket/in/*.parquet", "at_least": 2},
        {"url": "https://example.org/x", "min_size": 1, "stable_for": "1m"},
    ],
)
def test_what_is_still_to_be_rendered_is_judged_later(fields: dict[str, Any]) -> None:
    WaitFileParams.model_validate(fields)


def test_sql_expression_is_checked() -> None:
    fields = {"data_source": "d", "sql": "select 1", "until": "value >"}
    with pytest.raises(ValidationError, match="expression"):
        WaitSqlParams.model_validate(fields)


def test_page_names_every_field() -> None:
    page = (Path(__file__).parents[4] / "docs/tasks/wait.md").read_text(encoding="utf-8")
    rows = {line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| `")}
    fields = WaitFileParams.model_fields.keys() | WaitSqlParams.model_fields.keys()
    assert rows == {f"`{name}`" for name in fields}


def test_looks_grow_apart_as_the_task_says() -> None:
    slow = WaitFileParams.model_validate({"path": "/a", "every": "1m", "back_off": 2})
    assert [slow.interval_s(number) for number in range(6)] == [60, 120, 240, 480, 900, 900]
    even = WaitFileParams.model_validate({"path": "/a", "every": "1h"})
    assert even.interval_s(1000) == 3600


def test_types_look() -> None:
    assert (WaitFile.not_yet_exit_code, WaitSql.not_yet_exit_code) == (NOT_YET, NOT_YET)
    assert NOT_YET not in WaitFile.permanent_exit_codes


@pytest.mark.parametrize(
    ("pattern", "folder"), [("/in/*.csv", "/in"), ("/*/x", "/"), ("/a/b[12]/c", "/a")]
)
def test_folder_before_a_pattern(pattern: str, folder: str) -> None:
    assert fixed_part(pattern) == folder


def test_links_lead_nobody_out_of_the_folders_of_a_worker(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "x").touch()
    (inside / "link").symlink_to(outside / "x")
    (inside / "y").touch()
    roots = Roots.of(f"{inside} s3://bucket/a")
    assert roots.allows(str(inside / "y"))
    assert not roots.allows(str(inside / "link"))
    assert not roots.allows(str(tmp_path / "inner"))
    assert Roots.of("").allows("/etc/passwd")
    with pytest.raises(WorkFailed, match="wait_roots"):
        roots.require_path(str(outside))


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("s3://bucket/a", True),
        ("s3://bucket/a/b/*.csv", True),
        ("s3://bucket/ab", False),
        ("s3://bucket/a/../b", False),
        ("s3://other/a", False),
        ("webhdfs://bucket/a", False),
    ],
)
def test_storages_are_asked_only_where_the_administrator_says(url: str, allowed: bool) -> None:
    roots = Roots.of("/data s3://bucket/a/")
    if allowed:
        roots.require_url(url)
    else:
        with pytest.raises(WorkFailed, match="wait_roots") as refused:
            roots.require_url(url)
        assert refused.value.permanent
