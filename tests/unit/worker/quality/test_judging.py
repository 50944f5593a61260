"""Figures against what is wanted."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.quality.judgement import (
    judge_between,
    judge_fresh,
    judge_rows,
    judge_same,
)
from shoal.worker.types.quality.kind import Fresh, NotNull, Rows, Same, Value

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("at_most", "failing", "rows", "holds"),
    [
        (0, 0, 0, True),
        (0, 1, 10, False),
        (2, Decimal(2), 10, True),
        ("10%", 1, 10, True),
        ("10%", 2, 19, False),
        ("0%", 1, 10, False),
    ],
)
def test_rows_that_may_fail(at_most: Any, failing: Any, rows: int, holds: bool) -> None:
    check = NotNull(check="not_null", column="a", at_most=at_most)
    assert judge_rows(check, failing, rows).holds is holds


@pytest.mark.parametrize(
    ("found", "holds"),
    [(0, False), (1, True), (2.5, True), (Decimal("2.51"), False), (None, False)],
)
def test_limits_are_allowed_themselves(found: Any, holds: bool) -> None:
    check = Value(check="value", sql="select 1", min=1, max="${most}")
    assert judge_between(check, found, {"most": "2.5"}).holds is holds


@pytest.mark.parametrize(
    ("limit", "found", "said"),
    [
        ("${nowhere}", 1, "no parameter 'nowhere'"),
        ("many", 1, "'many' is not a number"),
        ("nan", 1, "'nan' is not a number"),
        (1, "text", "'text' is not a number"),
    ],
)
def test_what_is_no_number(limit: Any, found: Any, said: str) -> None:
    with pytest.raises(WorkFailed, match=said):
        judge_between(Rows(check="rows", max=limit), found, {})


@pytest.mark.parametrize(
    ("newest", "holds"),
    [
        (datetime(2026, 1, 2, 11, tzinfo=UTC), True),
        (datetime(2026, 1, 2, 10, 59, 59, tzinfo=UTC), False),
        (datetime(2026, 1, 2, 12), True),  # in Berlin, an hour ago
        (datetime(2026, 1, 2, 11, 59), False),
        ("2026-01-02 12:00:00", True),
        ("2026-01-02T10:00:00Z", False),
        (date(2026, 1, 2), False),
        (NOW.timestamp() - 3600, True),
        (NOW.timestamp() + 3600, False),
        (None, False),
    ],
)
def test_age_of_the_newest_row(newest: Any, holds: bool) -> None:
    check = Fresh(check="fresh", column="a", within="1h", timezone="Europe/Berlin")
    assert judge_fresh(check, newest, NOW.timestamp()).holds is holds


def test_text_that_is_no_time() -> None:
    check = Fresh(check="fresh", column="a", within="1h")
    with pytest.raises(WorkFailed, match="'yesterday' is not a time such as"):
        judge_fresh(check, "yesterday", NOW.timestamp())


@pytest.mark.parametrize(
    ("tolerance", "here", "there", "holds"),
    [
        (0, 5, Decimal("5.0"), True),
        (0, 5, 6, False),
        (1, 5, 6, True),
        ("1%", 99, 100, True),
        ("1%", 98.9, 100, False),
        (0, None, None, True),
        (5, None, 0, False),
        (0, "a", "a", True),
        (0, "a", 1, False),
    ],
)
def test_figures_of_two_tables(tolerance: Any, here: Any, there: Any, holds: bool) -> None:
    check = Same(check="same", table="u", tolerance=tolerance)
    assert judge_same(check, here, there).holds is holds
