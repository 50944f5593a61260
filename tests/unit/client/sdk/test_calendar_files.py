"""Days of calendars from files and from the command line."""

from pathlib import Path

import pytest

from shoal.client.cli.workflows.calendars import read_days
from shoal.client.errors import NotADay


def test_days_and_files_are_taken_together_in_order(tmp_path: Path) -> None:
    file = tmp_path / "holidays.txt"
    file.write_text(
        "\ufeff# public holidays\n\n2026-12-25  Christmas\n2026-01-01, New Year\n2026-05-01\n"
    )
    assert read_days(["2026-05-01", str(file), "2026-04-30"]) == [
        "2026-01-01",
        "2026-04-30",
        "2026-05-01",
        "2026-12-25",
    ]


@pytest.mark.parametrize("line", ["Christmas", "2026-02-30", "20260501", "25.12.2026"])
def test_line_that_is_no_day_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "days"
    file.write_text(f"2026-01-01\n{line}\n")
    with pytest.raises(NotADay, match=r"days:2: .* is not a day such as"):
        read_days([str(file)])


def test_what_is_neither_day_nor_file(tmp_path: Path) -> None:
    with pytest.raises(NotADay, match=r"2026-02-30 is not a day .* No such file"):
        read_days(["2026-02-30"])
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(NotADay, match="it is not text"):
        read_days([str(binary)])
