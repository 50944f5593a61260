"""Regular expressions take a time that grows with the text, not with its square (S21).

What others write is matched: cells of tables, log lines, names, expressions. A pattern that tries
each of many ways stands still for minutes over 100 kB of zeros.
"""

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.parts import PARTS, ROOT

METHODS = frozenset({"match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split"})
PIECES = (
    *("a", "0", " ", "\t", "\n", ".", "-", "_", "/", "\\", '"', "'", "$", "{", "[", "(", "<", "@"),
    *("a.", "a/", "a=", "a,", "0:", " a", "${", "$[", "\x1b[", "0-", "--", "::", '"a', "é", "_a"),
    *("0.", "[]", "{a", "A0", "aA", "%", "*", "a b"),
)
ENDS = ("", "!", "\x00")
SIZE = 5_000
NOTICEABLE_S = 0.002  # a linear pattern is done with so little text long before that
STEEPEST = 3.0  # times as long for twice the text: 2 is linear, 4 is quadratic
TRIES = 3  # a processor that is given to others now and then looks steep once, not each time


class Pattern(NamedTuple):
    """A pattern in the code, and what is done with it."""

    where: str
    text: str
    flags: int
    methods: frozenset[str]


def patterns() -> Iterator[Pattern]:
    """Yield each pattern that is written in the code, with the methods that are called on it."""
    for folder in sorted(PARTS):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "generated" not in path.parts:
                yield from _of_module(path)


def _of_module(path: Path) -> Iterator[Pattern]:
    tree = ast.parse(path.read_text())
    used: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            used.setdefault(ast.unparse(node.value), set()).add(node.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            name = ast.unparse(node.targets[0])
            yield from _compiled(path, node.value, used.get(name, set()))
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.startswith("re.") and called[3:] in METHODS:
                yield from _compiled(path, node, {called[3:]})


def _compiled(path: Path, call: ast.Call, methods: set[str]) -> Iterator[Pattern]:
    if not ast.unparse(call.func).startswith("re.") or not call.args:
        return
    given = call.args[0]
    if not isinstance(given, ast.Constant) or not isinstance(given.value, str):
        return
    written = [ast.unparse(one) for one in (*call.args[1:], *(k.value for k in call.keywords))]
    names = set(re.findall(r"re\.([A-Z]+)", " ".join(written)))
    flags = 0
    for name in names:
        flags |= int(getattr(re, name))
    where = f"{path.relative_to(ROOT)}:{call.lineno}"
    # One that is an argument is matched elsewhere, from its beginning as a rule.
    yield Pattern(where, given.value, flags, frozenset(methods) or frozenset({"fullmatch"}))


FOUND = list(patterns())


def test_the_patterns_of_the_code_are_found() -> None:
    assert len(FOUND) > 100
    assert len({one.where for one in FOUND if "search" in one.methods}) > 5


@pytest.mark.parametrize("pattern", FOUND, ids=lambda one: one.where)
def test_a_pattern_takes_no_longer_than_its_text(pattern: Pattern) -> None:
    assert not list(_steep(pattern, SIZE))


def _steep(pattern: Pattern, size: int) -> Iterator[tuple[str, str, str]]:
    """Yield each method, piece and end of texts that take longer than ``size`` explains."""
    compiled = re.compile(pattern.text, pattern.flags)
    for method in pattern.methods:
        for piece in PIECES:
            for end in ENDS:
                text = (piece * size)[:size] + end
                if _took(compiled, method, text) >= NOTICEABLE_S and all(
                    _is_steep(compiled, method, piece * size, text) for _ in range(TRIES)
                ):
                    yield method, piece, end


def _is_steep(compiled: re.Pattern[str], method: str, before: str, text: str) -> bool:
    """Return whether twice the text takes more than about twice as long."""
    # Caches may have been cold, and the processor slow: the quickest of some counts.
    once = min(_took(compiled, method, text) for _ in range(5))
    twice = min(_took(compiled, method, before + text) for _ in range(5))
    twice *= len(text) * 2 / (len(before) + len(text))
    return once >= NOTICEABLE_S and twice >= STEEPEST * once


def test_the_test_notices_what_is_quadratic() -> None:
    bad = Pattern("here", r"(?:\d+\.?\d*|\.\d+)", 0, frozenset({"fullmatch"}))
    assert next(_steep(bad, SIZE // 4), None) is not None


def _took(compiled: re.Pattern[str], method: str, text: str) -> float:
    begun = time.thread_time()  # others on the machine do not count
    if method in ("sub", "subn"):
        getattr(compiled, method)("", text)
    elif method == "finditer":
        for _ in compiled.finditer(text):
            pass
    else:
        getattr(compiled, method)(text)
    return time.thread_time() - begun
