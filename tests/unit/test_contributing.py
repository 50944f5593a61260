"""The exercise of CONTRIBUTING.md works: its test fails before its change and passes after it."""

import re
import sys
from textwrap import dedent, indent
from types import ModuleType

import pytest

from tests.support.parts import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = (ROOT / "core/shoal/core/hints.py").read_text(encoding="utf-8")
LAST_LINE = "        return get_close_matches(name, compared, n=n)\n"
TEST, CHANGE = map(dedent, re.findall(r"^   ```python\n(.*?)^   ```$", PAGE, re.M | re.S))


def run_exercise(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test of the exercise with ``code`` as the module that it tests."""
    module = ModuleType("shoal.core.hints")
    exec(code, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names: dict[str, object] = {}
    exec(TEST, names)
    test = names["test_hint_ignores_case"]
    assert callable(test)
    test()


def test_exercise_fails_before_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError):
        run_exercise(CODE, monkeypatch)


def test_exercise_passes_after_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CODE.endswith(LAST_LINE)  # "the last line of similar"
    changed = CODE.removesuffix(LAST_LINE) + indent(CHANGE, " " * 8)
    run_exercise(changed, monkeypatch)
