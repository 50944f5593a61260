"""Logs of processes that write on are rotated under them."""

from pathlib import Path

from shoal.client.local.cluster import rotate


def test_long_log_is_copied_and_its_writer_goes_on_at_the_beginning(tmp_path: Path) -> None:
    log = tmp_path / "master-1.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"a" * 100)
        assert not rotate(log, 100)
        writer.write(b"b")
        assert rotate(log, 100)
        writer.write(b"c")
    assert log.read_bytes() == b"c"
    assert (tmp_path / "master-1.log.1").read_bytes() == b"a" * 100 + b"b"


def test_older_copy_gives_way(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    for content in (b"one" * 10, b"two" * 10):
        log.write_bytes(content)
        assert rotate(log, 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.log", "x.log.1"]
    assert (tmp_path / "x.log.1").read_bytes() == b"two" * 10


def test_log_is_emptied_though_there_is_no_room_for_a_copy(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_bytes(b"x" * 10)
    (tmp_path / "x.log.1").mkdir()  # nothing can be written there
    assert rotate(log, 5)
    assert log.read_bytes() == b""


def test_missing_log_is_no_error(tmp_path: Path) -> None:
    assert not rotate(tmp_path / "none.log")
