"""Tables in the log: bounded, aligned, and harmless to a terminal."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from shoal.worker.types.sql.results.preview import WIDEST, WIDEST_TABLE, cell, one_line, preview


def test_numbers_stand_to_the_right_and_null_is_visible() -> None:
    rows = [(1, "a", None), (-20, "bc", True)]
    assert preview(["n", "text", "x"], rows).splitlines() == [
        "n   | text | x",
        "----+------+-----",
        "  1 | a    | NULL",
        "-20 | bc   | true",
    ]


def test_wide_characters_are_two_cells() -> None:
    lines = preview(["日本", "b"], [("語", 1), ("abcd", 2)]).splitlines()
    assert {cell_len(line) for line in lines} == {8}
    assert {cell_len(line.partition(" | ")[0]) for line in lines if " | " in line} == {4}


def test_what_steers_a_terminal_or_hides_is_written_out() -> None:
    shown = preview(["x"], [("\x1b[31mred\n\t\r\0",), ("\u202egnp.exe\u2066",), ("\ud800\u200b",)])
    assert "\\u001b[31mred\\n\\t\\r\\0" in shown
    assert "\\u202egnp.exe\\u2066" in shown
    assert "\\ud800\\u200b" in shown
    assert not {"\x1b", "\u202e", "\u200b", "\0", "\r"} & set(shown)


def test_long_values_and_many_columns_are_cut() -> None:
    names = [f"column_{number}" for number in range(200)]
    lines = preview(names, [["x" * 1_000_000] * 200]).splitlines()
    assert all(cell_len(line) <= WIDEST_TABLE for line in lines[:3])
    assert lines[2].startswith("x" * (WIDEST - 1) + "… | x")
    assert lines[-1].startswith("(197 more columns: column_3, column_4")
    assert preview(["b"], [(b"\0\xff" * 1_000_000,)]).endswith("00ff00f…")


@given(st.text(max_size=200))
def test_every_cell_is_one_bounded_line(text: str) -> None:
    for shown, width in ((cell(text), WIDEST), (one_line(text, 50), 50)):
        assert cell_len(shown) <= width
        assert len(shown.splitlines()) <= 1
        assert "\x1b" not in shown


def test_statement_in_one_line() -> None:
    assert one_line("select\n\t1 ,\n 2", 50) == "select 1 , 2"
    assert one_line("select " + "x" * 100, 20) == "select xxxxxxxxxxxx…"
