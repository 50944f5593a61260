"""Values that others have written: read within bounds, and refused with ValueError alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.alerts.messages.results import table_of, text_lines
from shoal.core.logic.children import InvalidItems, items_of
from shoal.core.untrusted import (
    MOST_LEVELS,
    NotJson,
    encodable,
    is_more,
    read_count,
    read_json,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_json_is_read_as_it_was_written(value: Any) -> None:
    assert read_json(json.dumps(value)) == value
    assert read_json(json.dumps(value).encode()) == value


@given(st.text() | st.binary())
def test_junk_is_a_value_or_refused(text: str | bytes) -> None:
    try:
        read_json(text)
    except NotJson:
        return


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" * 900 + "]" * 900,
        f"[{'9' * 5_000}]",
        '"' + "x" * (17 << 20) + '"',
        "[1,]",
        "",
    ],
)
def test_too_deep_too_long_and_broken_texts_are_refused(text: str) -> None:
    with pytest.raises(NotJson):
        read_json(text)
    with pytest.raises(NotJson):
        read_json(text.encode())


def test_levels_are_counted_exactly() -> None:
    deepest = "[" * MOST_LEVELS + "]" * MOST_LEVELS
    assert read_json(deepest)
    with pytest.raises(NotJson, match="more than 100 levels"):
        read_json(f"[{deepest}]")
    assert read_json(json.dumps([[]] * 1_000)) == [[]] * 1_000  # many, and not deep


@pytest.mark.parametrize(
    ("text", "count"),
    [("0", 0), ("12", 12), ("007", 7), ("0" * 5_000 + "3", 3), ("9" * 5_000, None)]
    + [(text, None) for text in ("", "-1", "1.0", "NaN", "1e3", "\u0661", "\u00b2", " 1", "1\0")],
)
def test_counts(text: str, count: int | None) -> None:
    assert read_count(text) == count


def test_number_of_many_digits_is_more_than_any_limit() -> None:
    assert is_more("9" * 5_000, 10)
    assert not is_more("10", 10)
    assert not is_more("0" * 5_000, 10)
    assert not is_more("x", 10)


@given(st.text(st.characters()))
def test_every_text_can_be_encoded(text: str) -> None:
    found = encodable(text)
    found.encode()
    assert "\0" not in found


@given(st.dictionaries(st.sampled_from(["rows", "checks", "a"]), st.text(st.characters())))
def test_every_output_makes_a_table_that_can_be_sent(outputs: dict[str, str]) -> None:
    table = table_of(outputs)
    if table is not None:
        "\n".join(text_lines(table)).encode()


def test_items_of_too_many_levels_are_no_list() -> None:
    with pytest.raises(InvalidItems, match="items must be a JSON list"):
        items_of("[" * 100_000)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NaN", "NaN is not a number"),
        ('{"a": -Infinity}', "-Infinity is not a number"),
        ("1e999", "the number 1e999 is too large"),
        (r'["\ud800"]', "half a character"),
        (r'{"\uDC00a": 1}', "half a character"),
        ('"\ud800"', "surrogates not allowed"),
        (b'"\xed\xa0\x80"', "can't decode"),
        ("9" * 5_000, "4300 digits"),
        ("[" * 100_000, "levels"),
        ("[" * 101 + "]" * 101, "levels"),
        (b"\xff\xfe\x00", "can't decode"),
        ("", "Expecting value"),
    ],
)
def test_strict_reader_refuses_what_cannot_be_written_again(text: str | bytes, reason: str) -> None:
    with pytest.raises(NotJson, match=reason):
        read_json(text, is_strict=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\\ud800"', r"\ud800"),
        (b"\xef\xbb\xbf[1.5]", [1.5]),
        ('{"a":1}'.encode("utf-16"), {"a": 1}),
    ],
)
def test_strict_reader_reads_all_else(text: str | bytes, value: object) -> None:
    assert read_json(text, is_strict=True) == value
