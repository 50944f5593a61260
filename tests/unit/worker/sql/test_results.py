"""Rows become outputs, JSON and files; what cannot is refused with a reason."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import openpyxl
import pyarrow.parquet
import pytest

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.results.collectors import Outputs, check_outputs, collector
from shoal.worker.types.sql.results.values import as_json, as_text
from shoal.worker.types.sql.session import Column
from shoal.worker.types.sql.sql import SqlParams


def collected(
    folder: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], **params: Any
) -> Outputs:
    given = SqlParams.model_validate({"data_source": "db", "sql": "select 1", **params})
    taking = collector(given, folder)
    try:
        taking.start([Column(*name.split(":"), *[""] * (":" not in name)) for name in names])
        for row in rows:
            if not taking.add(row):
                break
        outputs = taking.finish()
        check_outputs(outputs)
    except WorkFailed:
        taking.discard()
        raise
    return outputs


def refusal(
    folder: Path, names: Sequence[str], rows: Iterable[Sequence[Any]], **params: Any
) -> str:
    with pytest.raises(WorkFailed) as refused:
        collected(folder, names, rows, **params)
    return str(refused.value)


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "json_value", "text"),
    [
        (None, None, ""),
        (True, True, "true"),
        (7, 7, "7"),
        (2**60, str(2**60), str(2**60)),
        (1.5, 1.5, "1.5"),
        (float("nan"), "nan", "nan"),
        (Decimal("5.00"), "5.00", "5.00"),
        (Decimal("123"), 123, "123"),
        (Decimal("1E+3"), "1E+3", "1E+3"),
        (date(2026, 1, 31), "2026-01-31", "2026-01-31"),
        (datetime(2026, 1, 31, 10, tzinfo=UTC), "2026-01-31T10:00:00+00:00", None),
        (time(1, 2, 3), "01:02:03", "01:02:03"),
        (timedelta(days=-1), "-1 day, 0:00:00", "-1 day, 0:00:00"),
        (b"\0\xff", "00ff", "00ff"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001", None),
        ({"a": [Decimal("1.5"), None]}, {"a": ["1.5", None]}, '{"a": ["1.5", null]}'),
        ("é", "é", "é"),
    ],
)
def test_values_as_json_and_as_text(value: object, json_value: object, text: str | None) -> None:
    assert as_json(value) == json_value
    assert as_text(value) == (json_value if text is None else text)


# -- outputs ---------------------------------------------------------------------------------------


def test_value_and_row_become_outputs(tmp_path: Path) -> None:
    assert collected(tmp_path, ["count(*)"], [(7,)], result="value") == {"value": "7"}
    row = collected(tmp_path, ["n", "day"], [(None, date(2026, 1, 31))], result="row")
    assert row == {"n": "", "day": "2026-01-31"}


def test_rows_become_a_json_list(tmp_path: Path) -> None:
    got = collected(tmp_path, ["a", "b c"], [(1, "é"), (None, 'x"')], result="rows")
    assert got == {"rows": '[{"a":1,"b c":"é"},{"a":null,"b c":"x\\""}]', "truncated": "false"}


@pytest.mark.parametrize(
    ("names", "rows", "params", "reason"),
    [
        (["n"], [], {"result": "value"}, "wants one row, there is none"),
        (["n"], [(1,), (2,)], {"result": "row"}, "there are more"),
        (["a", "b"], [(1, 2)], {"result": "value"}, "wants one column, there are 2: a, b"),
        (["a", "a"], [(1, 2)], {"result": "row"}, "two columns are called 'a'"),
        (["count(*)"], [(1,)], {"result": "row"}, "'count(*)' cannot be an output; name it"),
        (["PATH"], [("/evil",)], {"result": "row"}, "'PATH' cannot be an output"),
        (["a"], [("x" * 1_100_000,)], {"result": "value"}, "1,100,000 bytes"),
        (["a"], [("\0",)], {"result": "value"}, "NUL"),
        (["a"], [("\ud800",)], {"result": "value"}, "half of a character"),
        (list("abcde"), [["x" * 1_000_000] * 5], {"result": "row"}, "5 outputs with 5,000,005"),
        (["a"], [(1,)] * 11, {"result": "rows", "max_rows": 10}, "more than 10 rows (`max_rows`)"),
        (["a"], [(1,)] * 10_001, {"result": "rows"}, "more than 10,000 rows"),
        (["a"], [("x" * 300,)] * 5_000, {"result": "rows"}, "more than 1,048,576 bytes as JSON"),
    ],
)
def test_what_cannot_be_an_output(
    tmp_path: Path,
    names: list[str],
    rows: list[Sequence[Any]],
    params: dict[str, Any],
    reason: str,
) -> None:
    assert reason in refusal(tmp_path, names, rows, **params)


def test_truncated_rows_say_so(tmp_path: Path) -> None:
    few = collected(tmp_path, ["a"], [(1,)] * 5, result="rows", max_rows=2, on_more="truncate")
    assert few == {"rows": '[{"a":1},{"a":1}]', "truncated": "true"}
    large = collected(tmp_path, ["a"], [("é" * 100,)] * 9_000, result="rows", on_more="truncate")
    assert len(large["rows"].encode()) <= 1 << 20
    assert 4_000 < len(json.loads(large["rows"])) < 9_000


# -- files -----------------------------------------------------------------------------------------

NAMES = ["n", "=name", "d", "day"]
ROWS = [
    (1, "=1+1", Decimal("-5.20"), date(2026, 1, 31)),
    (-2, "-5", Decimal("3.00"), None),
    (None, "+49 30", None, date(1, 1, 1)),
    (3, '@x,"y"\n', Decimal("1.00"), date(2026, 2, 1)),
    (4, "", Decimal("0.10"), date(2026, 2, 1)),
]


def test_csv_keeps_numbers_and_makes_formulas_text(tmp_path: Path) -> None:
    got = collected(tmp_path, NAMES, ROWS, result="file")
    assert got == {"file": "result.csv", "truncated": "false"}
    with (tmp_path / "result.csv").open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [
            ["n", "'=name", "d", "day"],
            ["1", "'=1+1", "-5.20", "2026-01-31"],
            ["-2", "-5", "3.00", ""],
            ["", "'+49 30", "", "0001-01-01"],
            ["3", '\'@x,"y"\n', "1.00", "2026-02-01"],
            ["4", "", "0.10", "2026-02-01"],
        ]


def test_xlsx_has_values_and_no_formulas(tmp_path: Path) -> None:
    collected(tmp_path, NAMES, ROWS, result="file", file_name="r.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "r.xlsx").active
    cells = list(sheet.iter_rows())
    assert [cell.value for cell in cells[1]] == [1, "=1+1", -5.2, datetime(2026, 1, 31)]
    assert cells[3][3].value == "0001-01-01"
    assert cells[1][1].data_type == "s"
    assert cells[1][1].quotePrefix
    assert not cells[5][1].quotePrefix
    assert not any(cell.data_type == "f" for row in cells for cell in row)


def test_parquet_has_types(tmp_path: Path) -> None:
    names = ["n", "s", "d:numeric(10,2)", "day", "at", "none:bigint", "mixed", "ok", "raw"]
    at = datetime(2026, 1, 31, 10, tzinfo=UTC)
    rows = [
        (1, "x", Decimal("5.20"), date(2026, 1, 31), at, None, 1, True, b"\0"),
        (None, None, None, None, None, None, "a", None, None),
    ]
    collected(tmp_path, names, rows, result="file", file_name="r.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "r.parquet")
    assert [str(field.type) for field in table.schema] == [
        *("int64", "string", "decimal128(10, 2)", "date32[day]", "timestamp[us, tz=UTC]"),
        *("int64", "string", "bool", "binary"),
    ]
    first, second = table.to_pylist()
    assert tuple(first.values()) == (*rows[0][:5], None, "1", True, b"\0")
    assert tuple(second.values()) == (*[None] * 6, "a", None, None)


def test_later_values_of_another_type_are_refused_with_their_place(tmp_path: Path) -> None:
    rows = [*[(1,)] * 2_100, ("a",)]
    reason = refusal(tmp_path, ["n"], rows, result="file", file_name="r.parquet")
    assert "column 'n', rows from 2,049 on: a value does not fit int64" in reason
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["r.csv", "r.parquet", "r.xlsx"])
def test_file_without_rows_has_its_columns(tmp_path: Path, name: str) -> None:
    assert collected(tmp_path, ["a", "b"], [], result="file", file_name=name)["file"] == name
    assert [path.name for path in tmp_path.iterdir()] == [name]


_WITHOUT_PANDAS = """
import importlib.util, sys
from pathlib import Path
from shoal.worker.types.sql.results.collectors import open_writer
from shoal.worker.types.sql.session import Column
writer = open_writer(Path(sys.argv[1]), [Column("n", "")])
writer.write([1])
writer.close()
assert "pandas" not in sys.modules, "it was imported"
assert importlib.util.find_spec("pandas"), "it can be, by others"
"""


def test_parquet_imports_no_pandas(tmp_path: Path) -> None:
    program = [sys.executable, "-c", _WITHOUT_PANDAS, str(tmp_path / "r.parquet")]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_many_rows_in_parquet_arrive_in_order(tmp_path: Path) -> None:
    count = 150_000
    collected(tmp_path, ["n"], ((n,) for n in range(count)), result="file", file_name="r.parquet")
    file = pyarrow.parquet.ParquetFile(tmp_path / "r.parquet")
    assert file.read().column("n").to_pylist() == list(range(count))
    assert file.num_row_groups == 2


def test_cell_that_is_too_long_for_excel_is_refused(tmp_path: Path) -> None:
    reason = refusal(tmp_path, ["a"], [("x" * 40_000,)], result="file", file_name="r.xlsx")
    assert "row 1, column 'a': 40,000 characters" in reason
    assert list(tmp_path.iterdir()) == []


def test_file_is_cut_at_max_rows(tmp_path: Path) -> None:
    got = collected(tmp_path, ["a"], [(1,)] * 9, result="file", max_rows=3, on_more="truncate")
    assert got == {"file": "result.csv", "truncated": "true"}
    assert (tmp_path / "result.csv").read_text() == "a\n1\n1\n1\n"
