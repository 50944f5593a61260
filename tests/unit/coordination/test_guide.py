"""The guide's programs use what the library has."""

import ast
import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "coordination.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.M | re.S)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.split("\n")[0][:40])
def test_every_program_imports_only_what_exists(program: str) -> None:
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name), f"{node.module} has no {name.name}"


@pytest.mark.parametrize("link", re.findall(r"\]\((\.\./[^)#]+)", GUIDE.read_text()))
def test_every_link_leads_somewhere(link: str) -> None:
    assert (GUIDE.parent / link).exists()


def test_there_are_programs_for_all_uses() -> None:
    text = "".join(PROGRAMS)
    for name in ("Election(", "BalancedJobs(", "Producer(", "Consumer(", "Autoscaler(", "Group("):
        assert name in text


def test_every_test_that_shows_a_promise_exists() -> None:
    table = (
        GUIDE.read_text()
        .partition("## What is promised, and the test that shows it\n")[2]
        .partition("\n## ")[0]
    )
    rows = re.findall(r"^\| (.+?) \| (.*?) ?\|$", table, re.M)[2:]  # without the head
    defined = Counter(
        name
        for kind in ("unit", "integration")
        for file in (ROOT / "tests" / kind / "coordination").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.M)
    )
    promises = [(promise, tests) for promise, tests in rows if not promise.startswith("**")]
    assert len(promises) > 60
    for promise, tests in promises:
        names = re.findall(r"`(test_\w+)`", tests)
        assert names, f"no test shows: {promise}"
        for name in names:
            assert defined[name] == 1, f"{promise}: {name} is defined {defined[name]} times"
