"""What a program has said last, as people read it in the reason of a failure."""

import os
from pathlib import Path

import pytest

from shoal.worker.logs.lines import last_line


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (b"", ""),
        (b"\n \n", ""),
        (b"one\ntwo\n\n", "two"),
        (b"no line end", "no line end"),
        (b"one\nshoal: cancelling\n", "one"),
        (b"Traceback:\n  File\nKeyError: 'a'\n", "KeyError: 'a'"),
        (b"ValueError\ncleaning up\n", "ValueError"),
        (
            b"pyspark.errors.AnalysisException: x\nINFO done\n",
            "pyspark.errors.AnalysisException: x",
        ),
        (b"first TypeError: a\nthen OSError: b\nend\n", "then OSError: b"),
        (b"an Errors: counter\nlast\n", "last"),
        (b"\x1b[31mred\x1b[0m\tx\x00y\n", "[31mred [0m x y"),
        (b"\xff\xfe\n", "\ufffd\ufffd"),
        (b"x" * 10_000, "x" * 299 + "…"),
        (b"Error: old\n" + b"y\n" * 10_000, "y"),
    ],
)
def test_last_line(tmp_path: Path, written: bytes, said: str) -> None:
    log = tmp_path / "log"
    log.write_bytes(written)
    assert last_line(log) == said


def test_log_that_is_not_there(tmp_path: Path) -> None:
    assert last_line(tmp_path / "nowhere") == ""
    assert last_line(tmp_path) == ""


def test_log_that_its_task_has_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert last_line(tmp_path / "pipe") == ""
    assert last_line(tmp_path / "link") == ""
