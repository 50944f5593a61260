"""The ways of a START and of a RESULT in docs/architecture.md are those of the code."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
_QUOTED = re.compile(r"`([^`]+)`")


def rows(way: str) -> list[tuple[str, list[str], list[str]]]:
    """Return the module, the definitions ("By") and the names ("Called") of each step."""
    section = PAGE.split(f"### The way of a {way}\n")[1].split("\n#")[0]
    cells = [line.strip("|").split(" | ") for line in section.splitlines() if line[:3] != "| #"]
    return [
        (_QUOTED.findall(one[1])[0], _QUOTED.findall(one[2]), _QUOTED.findall(one[3]))
        for one in cells
        if len(one) == 5 and one[0].strip().isdigit()
    ]


STEPS = [(way, *row) for way in ("START", "RESULT") for row in rows(way)]


def definitions(tree: ast.Module) -> set[str]:
    """Return the functions and classes of a module, and ``Class.method``."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (
                n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
            )
            found |= {f"{node.name}.{method.name}" for method in methods}
    return found


def names(tree: ast.Module) -> set[str]:
    """Return every name that a module uses, imports or defines."""
    found = definitions(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                found.add(name)
            case ast.arg(arg=name):
                found.add(name)
    return found


@pytest.mark.parametrize(("way", "at_least"), [("START", 15), ("RESULT", 10)])
def test_way_passes_each_layer_once(way: str, at_least: int) -> None:
    modules = [module for module, *_ in rows(way)]
    assert len(modules) >= at_least
    assert len(modules) == len(set(modules))


@pytest.mark.parametrize(
    ("way", "module", "by", "called"), STEPS, ids=[f"{way} {module}" for way, module, *_ in STEPS]
)
def test_step_is_there_in_the_code(way: str, module: str, by: list[str], called: list[str]) -> None:
    part, _, path = module.partition("/")
    tree = ast.parse((ROOT / part / "shoal" / part / path).read_text(encoding="utf-8"))
    assert by, way
    assert set(by) <= definitions(tree)
    assert called, way
    assert set(called) <= names(tree)
