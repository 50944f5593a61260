"""Paths and references of resources, and what a definition may say about them."""

from typing import Any

import pytest

from shoal.core.checks.workflow import InvalidDefinition, check_workflow
from shoal.core.definition.resources import (
    ResourceLocator,
    foreign,
    is_shared,
    local_path,
    path_problem,
)
from shoal.runtime.plugins import load_task_type


@pytest.mark.parametrize(
    "path", ["a", "etl/clean.py", "a b/c", "…/ä.sql", "x" * 200, "/".join("a" * 20), ".hidden"]
)
def test_path_of_a_file_within_a_project(path: str) -> None:
    assert path_problem(path) is None
    assert ResourceLocator.parse(path) == ResourceLocator(path)
    assert ResourceLocator.parse(f"{path}/") == ResourceLocator(path, is_folder=True)
    assert ResourceLocator.parse(f"{path}@17") == ResourceLocator(path, 17)
    assert local_path(f"{path}@17") == f"resources/{path}"
    for reference in (path, f"{path}/", f"{path}@17"):
        assert str(ResourceLocator.parse(reference)) == reference


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "is empty"),
        ("..", "not a path within a project"),
        ("a/../b", "not a path within a project"),
        ("./a", "not a path within a project"),
        ("/etc/passwd", "not a path within a project"),
        ("a//b", "not a path within a project"),
        ("a\\b", "character"),
        ("a\nb", "character"),
        ("a\x00b", "character"),
        ("a\u202eb", "character"),
        ("a:b:c", "character"),
        ("$x", "character"),
        ("e\u0301", "NFC"),
        ("-rf", "begins with a dash"),
        ("a/ b", "blank"),
        ("x" * 201, "longer than 200 bytes"),
        ("ab/" * 166 + "abc", "longer than 500 bytes"),
        ("a/" * 20 + "a", "more than 20 parts"),
        ("\ud800", "character"),
    ],
)
def test_path_that_leads_elsewhere_or_astray(path: str, words: str) -> None:
    assert words in str(path_problem(path))
    with pytest.raises(ValueError, match=words):
        ResourceLocator.parse(path)


@pytest.mark.parametrize(
    "text", ["a@", "a@0", "a@-1", "a@x", "a@1@2", "a/@1", "a@2147483648", "@1", "/", "a@1/"]
)
def test_reference_that_says_nothing(text: str) -> None:
    with pytest.raises(ValueError):
        ResourceLocator.parse(text)


def problems(**task: Any) -> dict[str, str]:
    raw = {"name": "w", "tasks": [{"name": "a", "type": "SHELL", **task}]}
    try:
        check_workflow(raw, load_task_type)
    except InvalidDefinition as error:
        return {one.field.removeprefix("tasks[0]."): one.message for one in error.problems}
    return {}


def test_definition_may_name_files_and_folders() -> None:
    assert not problems(
        params={"file": "etl/run.sh@3"}, resources=["etl/", "conf/a.json", "day/$[yyyyMMdd].csv"]
    )
    assert not problems(params={"file": "etl/${name}.sh"}, resources="etl/lib.sh")
    assert not problems(
        params={"script": "true"}, publish={"out/a.csv": "day/$[yyyyMMdd].csv", "${b}": "b"}
    )


@pytest.mark.parametrize(
    ("task", "field", "words"),
    [
        ({"params": {"file": "../x"}}, "params.file", "not a path within a project"),
        ({"params": {"file": "etl/"}}, "params.file", "is a folder; name one file"),
        ({"params": {"file": "a", "script": "true"}}, "params", "exactly one of script and file"),
        ({"params": {}}, "params", "exactly one of script and file"),
        ({"params": {"file": "${secret.x}"}}, "params.file", "secret"),
        ({"params": {"script": "x"}, "resources": ["a@x"]}, "resources[0]", "is not a version"),
        ({"params": {"script": "x"}, "resources": ["${secret.x}"]}, "resources[0]", "secret"),
        ({"params": {"script": "x"}, "resources": ["$[nonsense(]"]}, "resources[0]", ""),
        (
            {"type": "SWITCH", "params": {"cases": []}, "resources": ["a"]},
            "resources",
            "a task that the master runs itself uses no resources",
        ),
        ({"params": {"script": "x"}, "resources": ["a"] * 101}, "resources", "at most 100"),
        (
            {"params": {"script": "x"}, "publish": {"../a": "a"}},
            "publish.../a",
            "not a path within",
        ),
        ({"params": {"script": "x"}, "publish": {"/a": "a"}}, "publish./a", "not a path within"),
        ({"params": {"script": "x"}, "publish": {"a": "/a"}}, "publish.a", "not a path within"),
        ({"params": {"script": "x"}, "publish": {"a": "b/"}}, "publish.a", "not a path within"),
        ({"params": {"script": "x"}, "publish": {"a": "b@3"}}, "publish.a", "no path may have"),
        ({"params": {"script": "x"}, "publish": {"a": "${secret.x}"}}, "publish.a", "secret"),
        ({"params": {"script": "x"}, "publish": {"a": "$[nonsense(]"}}, "publish.a", ""),
        (
            {"params": {"script": "x"}, "publish": {"a": "c", "b": "c"}},
            "publish.b",
            "becomes 'c', as 'a' does; one of them would be lost",
        ),
        (
            {"type": "SWITCH", "params": {"cases": []}, "publish": {"a": "a"}},
            "publish",
            "a task that the master runs itself makes no files",
        ),
        (
            {"params": {"script": "x"}, "publish": {f"f{n}": f"f{n}" for n in range(101)}},
            "publish",
            "at most 100",
        ),
    ],
)
def test_mistake_is_told_where_it_is(task: dict[str, Any], field: str, words: str) -> None:
    found = problems(**task)
    assert words in found[field], found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lake:etl/x.sh", ResourceLocator("etl/x.sh", project="lake")),
        ("lake:etl/x.sh@3", ResourceLocator("etl/x.sh", 3, project="lake")),
        ("lake:lib/", ResourceLocator("lib", is_folder=True, project="lake")),
    ],
)
def test_reference_names_another_project(text: str, expected: ResourceLocator) -> None:
    assert ResourceLocator.parse(text) == expected
    assert str(expected) == text
    assert foreign(text) == "lake"


@pytest.mark.parametrize("text", [":x", "../a:x", "a b:x", "lake:", "lake:a:b", "lake:../x"])
def test_what_is_no_file_of_a_project_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        ResourceLocator.parse(text)


@pytest.mark.parametrize(
    ("shared", "text", "is_given"),
    [
        (["lib/"], "lake:lib/a", True),
        (["lib/"], "lake:lib/sub/a@2", True),
        (["lib/"], "lake:lib/", True),
        (["lib/"], "lake:lib/sub/", True),
        (["lib/"], "lake:library/a", False),
        (["lib/"], "lake:lib", False),
        (["lib/a"], "lake:lib/a@1", True),
        (["lib/a"], "lake:lib/", False),
        (["lib/a"], "lake:lib/ab", False),
        (["*"], "lake:x/", True),
        ([], "lake:x", False),
    ],
)
def test_what_is_shared_is_given_and_no_more(shared: list[str], text: str, is_given: bool) -> None:
    assert is_shared(shared, ResourceLocator.parse(text)) is is_given
