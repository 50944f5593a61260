"""What a DATA_QUALITY task may be told, and what it is told in return."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from shoal.core.checks.parameters import params_findings
from shoal.core.data_sources.references import sources_named
from shoal.worker.types.quality.kind import DataQualityParams, part_of


def params(*checks: dict[str, Any], **more: Any) -> DataQualityParams:
    given = {"data_source": "w", "table": "t", "checks": checks, **more}
    return DataQualityParams.model_validate(given)


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"check": "rows"}, "give min, max or both"),
        ({"check": "rows", "min": True}, "should be a valid"),
        ({"check": "wrong"}, "does not match any of the expected tags"),
        ({"check": "unique", "columns": []}, "at least 1 item"),
        ({"check": "not_null"}, "Field required"),
        ({"check": "not_null", "column": "a", "at_most": -1}, "a number of 0 or more"),
        ({"check": "not_null", "column": "a", "at_most": "101%"}, "neither a number nor a share"),
        ({"check": "not_null", "column": "a", "at_most": "some"}, "neither a number nor a share"),
        ({"check": "fresh", "column": "a", "within": "soon"}, "soon"),
        ({"check": "fresh", "column": "a", "within": 0}, "greater than 0"),
        ({"check": "fresh", "column": "a", "within": "1d", "timezone": "Mars"}, "not a time zone"),
        ({"check": "value", "sql": " ", "min": 1}, "is empty"),
        ({"check": "not_null", "column": "a", "colum": "b"}, "Extra inputs"),
    ],
)
def test_mistakes(check: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        params(check)


def test_checks_are_told_apart_by_their_names() -> None:
    check = {"check": "not_null", "column": "a"}
    with pytest.raises(ValidationError, match="two checks are called 'a is not null'"):
        params(check, check)
    assert [one.title for one in params(check, {**check, "name": "again"}).checks] == [
        "a is not null",
        "again",
    ]


def test_no_parameter_is_pasted_into_sql_and_all_sources_are_named() -> None:
    given = {
        "data_source": "w",
        "table": "t",
        "checks": [
            {"check": "holds", "condition": "a < ${secret.X}"},
            {"check": "same", "table": "u", "data_source": "other"},
            {"check": "rows", "min": 1},
        ],
    }
    [(path, message)] = params_findings(DataQualityParams, given, on_worker=True)
    assert path == ("checks", 0, "condition")
    assert "secrets are not pasted into programs" in message
    assert [text for _, text, _ in sources_named(DataQualityParams, given)] == ["w", "other"]


def test_shares() -> None:
    assert part_of(3, Decimal(50)) == 3
    assert part_of("0.5%", Decimal(-1000)) == 5
