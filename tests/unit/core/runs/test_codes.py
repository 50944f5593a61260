"""Every code that the API says things with is documented, with its arguments."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from shoal.core.runs.why import reasons
from shoal.core.runs.why.codes import Code, HealthCode

ROOT = Path(__file__).parents[4]
SOURCES = (
    "core/shoal/core/runs/why/findings.py",
    "api/shoal/api/operations/runs/explanation.py",
    "api/shoal/api/operations/views/today.py",
    "core/shoal/core/insight/expectation.py",
)
_ROW = re.compile(r"^\| `([a-z_.]+)` \| ([^|]+) \|", re.M)


def documented() -> dict[str, set[str]]:
    """The arguments of each code, as the page has them."""
    text = (ROOT / "docs/codes.md").read_text(encoding="utf-8")
    return {code: set(re.findall(r"`(\w+)`", told)) for code, told in _ROW.findall(text)}


def said() -> Iterator[tuple[str, set[str]]]:
    """Yield each code that is said with literal arguments, as the sources have them."""
    for name in SOURCES:
        tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call):
                continue
            values = [*call.args, *(one.value for one in call.keywords)]
            codes = [
                one.attr
                for one in values
                if isinstance(one, ast.Attribute)
                and isinstance(one.value, ast.Name)
                and one.value.id == "Code"
            ]
            dicts = [one for one in values if isinstance(one, ast.Dict)]
            if codes and dicts:
                keys = {one.value for one in dicts[0].keys if isinstance(one, ast.Constant)}
                yield Code[codes[0]].value, {str(key) for key in keys}


def test_every_code_is_documented() -> None:
    codes = {code.value for one in (Code, HealthCode) for code in one}
    assert documented().keys() == codes


def test_the_arguments_of_reasons_are_those_that_are_documented() -> None:
    told = documented()
    losses = {Code.REASON_WORKER_GONE, Code.REASON_CLAIM_GONE}
    for code in {one.code for one in reasons.SENTENCES}:
        more = {"is_final"} if code in losses else set()
        assert told[code] == {*reasons.arguments_of(code), *more}


def test_the_arguments_of_codes_are_those_that_are_documented() -> None:
    found = list(said())
    assert len(found) > 25
    told = documented()
    assert {code: keys for code, keys in found if keys != told[code]} == {}
