"""Values as literals of Hive and Spark: nothing of one can become part of the statement."""

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.worker.types.sql.drivers.literals import filled, literal, placeholder


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (7, "7"),
        (-7, "(-7)"),
        (1 << 63, "CAST('9223372036854775808' AS DECIMAL(38,0))"),
        (1.5, "CAST('1.5' AS DOUBLE)"),
        (Decimal("-1.50"), "CAST('-1.50' AS DECIMAL(3,2))"),
        (Decimal("0.001"), "CAST('0.001' AS DECIMAL(3,3))"),
        (Decimal("1E+3"), "CAST('1000' AS DECIMAL(4,0))"),
        (date(2026, 1, 31), "CAST('2026-01-31' AS DATE)"),
        (time(23, 59, 1), "'23:59:01'"),
        (datetime(2026, 1, 31, 10, 0, 0, 5), "CAST('2026-01-31 10:00:00.000005' AS TIMESTAMP)"),
        (
            datetime(2026, 1, 31, 10, tzinfo=UTC),
            "CAST('2026-01-31 10:00:00+00:00' AS TIMESTAMP)",
        ),
        ("", "''"),
        ("étoile; -- /* % ?", "'étoile; -- /* % ?'"),
        ("it's", "decode(unhex('69742773'), 'UTF-8')"),
    ],
)
def test_value_as_a_literal(value: Any, text: str) -> None:
    assert literal(value) == text


@given(st.text())
def test_text_ends_no_literal_and_opens_no_variable(text: str) -> None:
    shown = literal(text)
    plain = re.fullmatch(r"'([^'\"\\$`{}\x00-\x1f]*)'", shown)
    coded = re.fullmatch(r"decode\(unhex\('([0-9a-f]*)'\), 'UTF-8'\)", shown)
    if plain:
        assert plain[1] == text
    else:
        assert coded
        assert bytes.fromhex(coded[1]).decode("utf-8", "surrogatepass") == text


def test_values_stand_where_their_placeholders_do_and_nowhere_else() -> None:
    statement = f"SELECT {placeholder(1)}, '0', {placeholder(0)}, {placeholder(1)}"
    assert filled(statement, [7, placeholder(0)]) == (
        "SELECT decode(unhex('003000'), 'UTF-8'), '0', 7, decode(unhex('003000'), 'UTF-8')"
    )
