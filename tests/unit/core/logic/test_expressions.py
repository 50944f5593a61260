"""The expression language of SWITCH: what it says, and what it refuses."""

import ast
import contextlib
import tracemalloc
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.logic.bounded import OPERATORS
from shoal.core.logic.expressions import InvalidExpression, check, is_true, names
from shoal.core.logic.switch import InvalidSwitch, choose

GIVEN = {"n": "10", "mode": "full", "day": "2026-01-31", "empty": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("number(n) > 9", True),
        ("n > '9'", False),  # text compares as text
        ("mode == 'full' and not empty == 'x'", True),
        ("mode in ['full', 'part']", True),
        ("mode not in ('a', 'b')", True),
        ("5 < number(n) <= 10", True),
        ("number(n) % 3 == 1 and number(n) // 3 == 3", True),
        ("length(trim('  a ')) == 1", True),
        ("starts_with(day, '2026') and ends_with(day, '31')", True),
        ("contains(day, '-02-')", False),
        ("(true if number(n) > 5 else false)", True),
        ("max(number(n), 3) == 10 and min(1, 2) == 1", True),
        ("upper(mode) == 'FULL' or lower('A') == 'a'", True),
        ("number('2.5') * 2 == 5", True),
        ("text(3) == '3'", True),
    ],
)
def test_expressions_mean_what_they_say(text: str, expected: bool) -> None:
    assert is_true(text, GIVEN) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n ==",
        "n; m",
        "__import__('os').system('true')",
        "().__class__",
        "mode.upper()",
        "[x for x in mode]",
        "lambda: 1",
        "mode[0] == 'f'",
        "{'a': 1} == 1",
        "f'{mode}' == 'full'",
        "2 ** 1000000000 > 1",
        "1 << 100000000 > 1",
        "(x := 1) == 1",
        "open('x') == 1",
        "number(x=1) == 1",
        "*[1]",
        "None == n",
        "b'x' == n",
        "1 == 1 " + "and 1 == 1 " * 400,
    ],
)
def test_what_is_not_part_of_the_language_is_refused_when_it_is_saved(text: str) -> None:
    with pytest.raises(InvalidExpression):
        check(text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("nowhere == 1", "nowhere"),
        ("number(mode) > 1", "full"),
        ("n > 9", "not supported"),
        ("number(n) / 0 > 1", "division"),
        ("n", "not true or false"),
        ("number(n)", "not true or false"),
        ("'a' * 100000000 == 'a'", "too long|long"),
    ],
)
def test_what_cannot_be_evaluated_says_why(text: str, part: str) -> None:
    check(text)
    with pytest.raises(InvalidExpression, match=part):
        is_true(text, GIVEN)


def test_names_are_the_parameters_used() -> None:
    assert names("number(a) > 1 and lower(b) == c or true") == {"a", "b", "c"}


@given(st.text(max_size=60))
def test_no_text_does_anything_else_than_answer_or_be_refused(text: str) -> None:
    with contextlib.suppress(InvalidExpression):
        assert is_true(text, GIVEN) in (True, False)


HOSTILE = {
    "padded": "'%400000000d' % 1 == ''",
    "padded beyond all memory": "'%9999999999d' % 1 == ''",
    "filled in": "'%s' % n == '10'",
    "filled in by a list": "[n] % 1 == 1",
    "repeated": "'a' * 400000000 == ''",
    "repeated from the left": "400000000 * 'a' == ''",
    "long list": "[1] * 400000000 == 1",
    "list that holds one many times": "[[[[1] * 999] * 999] * 999] == 1",
    "joined": "long + long == ''",
    "large parameter": "huge == ''",
    "length of a large one": "length(huge) == 0",
    "long texts": "upper(text([long, long, long])) == ''",
    "long number": "number('" + "9" * 1_500 + "') > 1",
    "long number of a parameter": "number(digits) > 1",
    "long literal": "9" * 1_999 + ">1",
    "quoted in an error": "'" + "x" * 1_500 + "' + 1 == 1",
    "long product": "*".join(["number(number)"] * 100) + " > 1",
    "many signs": "-" * 1_900 + "1 > 1",
    "many brackets": "(" * 190 + "1" + ")" * 190 + " > 1",
    "many negations": "not " * 480 + "true",
    "deep list": "[" * 900 + "]" * 900 + " == 1",
    "infinite": "number('inf') // 1 > 1 % number('inf')",
}
LARGE = {
    **GIVEN,
    "huge": "x" * 16_000_000,
    "long": "x" * 10_000,
    "digits": "9" * 4_000,
    "number": "9" * 300,
}


def _answer(text: str) -> tuple[bool | str, int]:
    """Return the answer to an expression, or why there is none, and the peak of its memory."""
    tracemalloc.start()
    try:
        return is_true(text, LARGE), tracemalloc.get_traced_memory()[1]
    except InvalidExpression as error:
        return str(error), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _assert_small(text: str) -> None:
    answer, peak_b = _answer(text)
    assert peak_b < 8_000_000  # 2,000 characters of Python's own tree are the most of it
    assert len(str(answer)) <= 1_000


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_expression_costs_little_and_says_so_in_few_words(text: str) -> None:
    _assert_small(text)


def test_remainder_is_one_of_numbers_only() -> None:
    with pytest.raises(InvalidExpression, match=r"% works on numbers; write number\(…\) around"):
        is_true("'%s' % 1 == '1'", {})


_LEAVES = st.sampled_from(
    [
        "n",
        "long",
        "digits",
        "number",
        "1",
        "0",
        "2.5",
        "'%99999d'",
        "1e308",
        "true",
        "''",
        "-7",
        "number(number)",
        "number(n)",
        "number('nan')",
        "99999999",
    ]
)


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = ["+", "-", "*", "/", "//", "%", "==", "!=", "<", ">=", "in", "not in", "and", "or"]
    calls = ["number", "text", "length", "lower", "upper", "trim", "min", "max"]
    pairs = ["starts_with", "ends_with", "contains", "min", "max"]
    return st.one_of(
        st.tuples(inner, st.sampled_from(signs), inner).map(lambda p: f"({' '.join(p)})"),
        st.tuples(st.sampled_from(calls), inner).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(st.sampled_from(pairs), inner, inner).map(lambda p: f"{p[0]}({p[1]}, {p[2]})"),
        st.lists(inner, max_size=4).map(lambda p: f"[{', '.join(p)}]"),
        inner.map(lambda text: f"(not {text})"),
    )


@settings(max_examples=300, deadline=None)
@given(st.recursive(_LEAVES, _joined, max_leaves=40))
def test_no_expression_becomes_large_or_fails_in_any_other_way(text: str) -> None:
    _assert_small(text)


def test_whatever_an_evaluation_raises_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> object:
        raise MemoryError

    monkeypatch.setitem(cast("dict[type[ast.AST], object]", OPERATORS), ast.Eq, fail)
    with pytest.raises(InvalidExpression, match="MemoryError"):
        is_true("1 == 1", {})


def test_switch_has_a_bounded_number_of_cases_and_says_so_if_it_was_stored_before() -> None:
    case = {"when": "n == '1'", "then": ["a"]}
    with pytest.raises(InvalidSwitch, match="cases: Tuple should have at most 200 items"):
        choose({"cases": [case] * 201}, GIVEN)
    with pytest.raises(InvalidSwitch, match="exceed 40000 characters"):
        choose({"cases": [case | {"when": f"n == '{'x' * 1_900}'"}] * 30}, GIVEN)
    assert choose({"cases": [case] * 200, "default": ["b"]}, GIVEN) == ("b",)


def test_what_is_too_large_is_not_worked_on() -> None:
    with pytest.raises(InvalidExpression, match="a text of 16000000 characters is too long"):
        is_true("huge == ''", LARGE)
    assert is_true("n == '10'", LARGE)  # what it does not use does not matter
