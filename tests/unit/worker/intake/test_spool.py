import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shoal.worker.home.spool import Spool, SpoolEntry


def test_results_come_back_oldest_first_also_for_a_new_process(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    for number in (3, 1, 2):
        spool.write(f"id-{number}", {"number": number})
        os.utime(spool.path(f"id-{number}"), ns=(number, number))

    assert Spool(tmp_path / "spool").pending() == [
        SpoolEntry("id-1", {"number": 1}),
        SpoolEntry("id-2", {"number": 2}),
        SpoolEntry("id-3", {"number": 3}),
    ]


def test_a_later_write_replaces_the_result(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write("7", {"outcome": "FAILED"})
    spool.write("7", {"outcome": "KILLED"})
    assert spool.pending() == [SpoolEntry("7", {"outcome": "KILLED"})]


def test_a_removed_result_is_gone_and_may_be_removed_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write("7", {})
    spool.remove("7")
    spool.remove("7")
    assert spool.pending() == []


@pytest.mark.parametrize("content", [b"", b'{"half": ', b"\xff\xfe", b"[1]"])
def test_a_corrupt_file_is_quarantined_and_does_not_block_others(
    tmp_path: Path, content: bytes
) -> None:
    spool = Spool(tmp_path)
    spool.path("bad").write_bytes(content)
    spool.write("good", {"a": 1})

    with capture_logs() as logs:
        assert spool.pending() == [SpoolEntry("good", {"a": 1})]

    assert [entry["event"] for entry in logs] == ["spool file is corrupt"]
    (aside,) = (tmp_path / "corrupt").iterdir()
    assert aside.read_bytes() == content
    with capture_logs() as logs:
        assert len(spool.pending()) == 1
    assert logs == []


def test_a_file_that_cannot_be_read_now_stays_where_it_is(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.path("7").mkdir()  # reading it fails with an OSError, also for root
    with capture_logs() as logs:
        assert spool.pending() == []
    assert [entry["event"] for entry in logs] == ["spool file cannot be read"]
    assert spool.path("7").exists()


def test_half_written_files_are_not_results(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    (tmp_path / ".7.json.tmp").write_text('{"a": 1}')
    assert spool.pending() == []


def test_a_failed_write_keeps_the_old_result_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write("7", {"a": 1})
    with pytest.raises(TypeError):
        spool.write("7", {"a": object()})
    assert spool.pending() == [SpoolEntry("7", {"a": 1})]
    spool.path("8").mkdir()
    with pytest.raises(IsADirectoryError):
        spool.write("8", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["7.json", "8.json"]


@pytest.mark.parametrize("entry_id", ["", "../7", "a/b", ".hidden", "a\0b", "x" * 101])
def test_ids_that_are_no_slugs_are_refused(tmp_path: Path, entry_id: str) -> None:
    with pytest.raises(ValueError, match="slug"):
        Spool(tmp_path).write(entry_id, {})


def test_results_are_private_to_the_user(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.write("7", {})
    assert spool.path("7").stat().st_mode & 0o777 == 0o600
    assert spool.folder.stat().st_mode & 0o777 == 0o700
