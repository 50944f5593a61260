"""What a SQL task accepts, and that the page of the type says so."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from shoal.core.task_types import SourceName, Verbatim, fields_marked
from shoal.worker.types.sql.sql import LARGEST_SHEET, MOST_ROWS, SqlParams

PAGE = Path(__file__).parents[4] / "docs" / "tasks" / "sql.md"


def params(**fields: Any) -> SqlParams:
    return SqlParams.model_validate({"data_source": "db", "sql": "select 1", **fields})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"sql": " \n"}, "nothing to run"),
        ({"sql": "select '\0'"}, "NUL"),
        ({"data_source": ""}, "at least 1"),
        ({"file_name": "../r.csv"}, "pattern"),
        ({"file_name": "a/r.csv"}, "pattern"),
        ({"file_name": "r.exe"}, "pattern"),
        ({"fail_if": "import os"}, "expression"),
        ({"types": {"x": "uuid"}}, "'text'"),
        ({"types": {"a b": "text"}}, "pattern"),
        ({"types": {"x": "text"}, "identifiers": {"x": "t"}}, "so it has no type"),
        ({"separator": " "}, "white space"),
        ({"statement_timeout": "soon"}, "duration"),
        ({"max_rows": 0}, "greater than or equal to 1"),
    ],
)
def test_bad_params_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(reason)):
        params(**fields)


def test_limits_of_rows() -> None:
    assert params().row_limit is None
    assert params(result="rows").row_limit == MOST_ROWS
    assert params(result="file", file_name="a.parquet").row_limit is None
    assert params(result="file", file_name="a.xlsx").row_limit == LARGEST_SHEET
    assert params(result="file", file_name="a.xlsx", max_rows=5).row_limit == 5


def test_texts_of_programs_are_verbatim_and_the_source_is_marked() -> None:
    assert fields_marked(SqlParams, Verbatim) == {"sql", "before", "after", "fail_if"}
    assert fields_marked(SqlParams, SourceName) == {"data_source"}


def test_type_is_cheap_to_import() -> None:
    heavy = {"pyarrow", "xlsxwriter", "rich", "psycopg", "sqlite3", "duckdb", "numpy", "sqlglot"}
    code = f"import sys, shoal.worker.types.sql.sql\nprint(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_page_names_every_field_with_its_default() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Fields")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", text, re.MULTILINE)
    assert dict(rows) == {name: shown(field) for name, field in SqlParams.model_fields.items()}


def shown(field: FieldInfo) -> str:
    """Return the default of a field as the page has it."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "–" if value in (None, "", {}) else f"`{str(value).lower()}`"
