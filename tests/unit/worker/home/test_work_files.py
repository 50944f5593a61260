"""The folders of attempts."""

from pathlib import Path

import pytest

from shoal.worker.processes.work_files import make_folder, remove_tree, write_new


def test_a_new_folder_is_empty_and_its_owner_s_alone(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    make_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "old").touch()
    make_folder(folder)
    assert list(folder.iterdir()) == []


def test_a_file_is_written_whole_and_never_over_another(tmp_path: Path) -> None:
    path = tmp_path / "program"
    content = b"x" * 5_000_000
    write_new(path, content, 0o700)
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o700
    with pytest.raises(FileExistsError):
        write_new(path, b"", 0o600)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "link", b"", 0o600)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("inner", ["file", "folder/file", "script.sh", "script.sh/file"])
def test_a_folder_is_removed_with_all_that_is_in_it(tmp_path: Path, inner: str) -> None:
    folder = tmp_path / "7"
    (folder / inner).parent.mkdir(parents=True)
    (folder / inner).touch()
    (folder / "dangling").symlink_to("nowhere")
    assert remove_tree(folder)
    assert not folder.exists()
    assert remove_tree(folder)  # what is gone already is fine


def test_nothing_behind_a_link_is_removed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    for name in ("file", "parameters.json"):
        (kept / name).touch()
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "inside").symlink_to(kept)
    remove_tree(folder)
    assert not folder.exists()
    folder.symlink_to(kept)  # in the place of the folder itself
    remove_tree(folder)
    assert len(list(kept.iterdir())) == 2
