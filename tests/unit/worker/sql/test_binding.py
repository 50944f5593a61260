"""``${name}`` in SQL is bound, quoted as a name, or refused: its value never becomes text."""

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.worker.types.sql.statements.lexer import InvalidStatement
from shoal.worker.types.sql.statements.parameters import BindingScope, Bound, bind
from shoal.worker.types.sql.statements.value_types import NoValue, ValueType, typed
from tests.unit.worker.sql.dialects import DIALECTS

PARAMETERS = {"x": "it's; --", "n": "7", "dt": "2026-01-31"}


def quoted(name: str) -> str:
    return ".".join(f'"{part}"' for part in name.split("."))


def bound(
    text: str,
    kind: str = "postgresql",
    types: dict[str, ValueType] | None = None,
    style: str = "?",
) -> Bound:
    scope = BindingScope(PARAMETERS, types or {}, {"t": "sales.a%b"})

    def placeholder(number: int, kind: str) -> str:
        return style.format(number + 1, kind)

    return bind(text, DIALECTS[kind], scope, placeholder, quoted)


def test_bare_and_wholly_quoted_names_are_values() -> None:
    got = bound("select ${x}, '${n}' from ${t} where a = N'${x}'")
    assert got.text == 'select ?, ? from "sales"."a%b" where a = ?'
    assert got.values == ("it's; --", "7", "it's; --")
    assert got.names == ("x", "n", "x")


def test_places_are_numbered_and_typed() -> None:
    got = bound("select ${x}, ${n}", types={"n": ValueType.INTEGER}, style="${}::{}")
    assert got == Bound("select $1::text, $2::integer", ("it's; --", 7), ("x", "n"))


def test_text_without_values_stays_as_it_is() -> None:
    text = "select '100 %', a % 2, ' $' /* ${x} */ from t -- ${nobody}"
    assert bound(text, style="%s") == Bound(text)


def test_percent_is_doubled_where_percent_opens_values() -> None:
    got = bound("select a % 2, '%' from ${t} where x = ${x}", style="%s")
    assert got.text == 'select a %% 2, \'%%\' from "sales"."a%%b" where x = %s'


def test_comments_stay_and_comments_that_are_run_do_not() -> None:
    got = bound("/* ${x} */ select 1 /*! + ${n} */ # ${x}", "mariadb")
    assert got.text == "/* ${x} */ select 1 /*! + ? */ # ${x}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("select '/data/${dt}/x'", "'…' || ${dt} || '…'"),
        ("select $$${x}$$", "inside a longer literal"),
        ("do $$ begin perform ${x}; end $$", "inside a longer literal"),
        ("select X'${x}'", "inside a longer literal"),
        ("select date '${dt}'", "CAST(${dt} AS DATE)"),
        ("select interval '${n} days'", "inside a longer literal"),
        ('select "${t}"', "without the quotes"),
        ("select * from sales_${dt}", "'sales_${dt}'"),
        ("select * from ${dt}_sales", "`identifiers`"),
        ("select '${t}'", "write it unquoted"),
        ("select ${nn}", "no parameter 'nn'; did you mean 'n'?"),
        ("select ${a b}", "open no parameter"),
    ],
)
def test_what_cannot_be_bound_is_refused_with_a_hint(text: str, reason: str) -> None:
    with pytest.raises(InvalidStatement) as refused:
        bound(text)
    assert reason in str(refused.value)
    assert "it's; --" not in str(refused.value)


@given(st.text(st.sampled_from("'\"\\;-$%{}[]/*#`\n\0 aé"), max_size=20))
def test_no_value_reaches_the_text(value: str) -> None:
    for kind in DIALECTS:
        scope = BindingScope({"x": value}, {}, {})
        got = bind("select ${x}, '${x}'", DIALECTS[kind], scope, lambda *_: "?", quoted)
        assert got == Bound("select ?, ?", (value, value), ("x", "x"))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("text", " a ", " a "),
        ("integer", " -5 ", -5),
        ("integer", "9223372036854775808", 2**63),
        ("float", "1e3", 1000.0),
        ("decimal", "1.10", Decimal("1.10")),
        ("boolean", "true", True),
        ("boolean", "0", False),
        ("date", "2026-01-31", date(2026, 1, 31)),
        ("time", "23:59:59", time(23, 59, 59)),
        ("timestamp", "2026-01-31 10:00:00", datetime(2026, 1, 31, 10)),
        ("timestamp", "2026-01-31T10:00:00Z", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_typed_values(kind: str, text: str, value: object) -> None:
    got = typed("x", text, ValueType(kind))
    assert (type(got), got) == (type(value), value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("integer", ""),
        ("integer", "1.5"),
        ("integer", "1_000"),
        ("integer", "१"),
        ("float", "nan"),
        ("decimal", "Infinity"),
        ("boolean", "yes"),
        ("date", "31.01.2026"),
        ("timestamp", "now"),
    ],
)
def test_text_of_another_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(NoValue, match=f"parameter x: .* is not a valid {kind}"):
        typed("x", text, ValueType(kind))
