"""Results of tasks in messages: as tables and as files for spreadsheets."""

import json

from shoal.core.alerts.messages.results import (
    ResultTable,
    attachment,
    html_of,
    table_of,
    text_lines,
)


def test_rows_are_a_table() -> None:
    rows = [{"day": "2026-03-02", "orders": 17}, {"day": "2026-03-03", "note": None, "ok": True}]
    table = table_of({"rows": json.dumps(rows), "row_count": "2"})
    assert table == ResultTable(
        ["day", "orders", "note", "ok"],
        [["2026-03-02", "17", "", ""], ["2026-03-03", "", "", "true"]],
    )
    assert list(text_lines(table)) == [
        "day         orders  note  ok",
        "2026-03-02  17",
        "2026-03-03                true",
    ]


def test_checks_of_data_are_a_table() -> None:
    checks = [{"name": "no gaps", "state": "warned", "figure": 3}]
    table = table_of({"rows": "1000", "warned": "1", "checks": json.dumps(checks)})
    assert table == ResultTable(["name", "state", "figure"], [["no gaps", "warned", "3"]])


def test_other_outputs_are_a_row() -> None:
    found = table_of({"orders": "17", "amount": "3.5"})
    assert found == ResultTable(["amount", "orders"], [["3.5", "17"]])
    assert table_of({"rows": "no json"}) == ResultTable(["rows"], [["no json"]])
    assert table_of({"rows": "[1, 2]"}) == ResultTable(["rows"], [["[1, 2]"]])
    assert table_of({}) is None


def test_long_results_are_cut_in_messages_and_whole_in_files() -> None:
    table = ResultTable(["n"], [[str(number)] for number in range(1234)])
    assert list(text_lines(table))[-1] == "(+1,214)"
    assert html_of(table).count("<tr>") == 21
    assert attachment("x", table).content.count(b"\r\n") == 1235
    long = ResultTable(["n"], [["x" * 1000]])
    assert len(list(text_lines(long))[1]) == 100


def test_nothing_is_run_by_who_reads_it() -> None:
    table = ResultTable(["=cmd()"], [["<script>alert(1)</script>"], ["=1+1"], ["-5"], ["@x"]])
    shown = html_of(table)
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    lines = attachment("x", table).content.decode().split("\r\n")
    assert lines[0] == "'=cmd()"
    assert lines[2:5] == ["'=1+1", "-5", "'@x"]
