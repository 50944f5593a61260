"""Hints to the file system."""

from pathlib import Path

from shoal.worker.home.home import spread_subfolders


def test_a_hint_changes_nothing_that_can_be_seen(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir(mode=0o700)
    (folder / "7").mkdir()
    before = folder.stat()
    spread_subfolders(folder)
    spread_subfolders(folder)  # again, as each start of the worker does
    assert (folder.stat().st_mode, folder.stat().st_ino) == (before.st_mode, before.st_ino)
    (folder / "8").mkdir()
    assert sorted(path.name for path in folder.iterdir()) == ["7", "8"]


def test_what_does_not_take_hints_is_left_alone(tmp_path: Path) -> None:
    spread_subfolders(tmp_path / "missing")
    (tmp_path / "file").write_text("content")
    spread_subfolders(tmp_path / "file")
    (tmp_path / "link").symlink_to(tmp_path)
    spread_subfolders(tmp_path / "link")
    spread_subfolders(Path("/proc/self"))
    assert (tmp_path / "file").read_text() == "content"
