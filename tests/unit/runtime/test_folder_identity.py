"""A folder is known again however it is reached, and its copy is not taken for it."""

import os
import shutil
from pathlib import Path

import pytest

from shoal.runtime.folder_identity import FolderIdentity


def of(folder: Path) -> FolderIdentity:
    found = FolderIdentity.of(folder)
    assert found is not None
    return found


def test_links_and_new_names_are_the_same_folder_and_a_copy_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "data"
    folder.mkdir(parents=True)
    (folder / "file").write_text("x")
    (tmp_path / "link").symlink_to(folder)
    before = of(folder)
    assert before.is_same(of(tmp_path / "link"))
    assert before.is_same(of(folder / ".." / "data"))
    assert FolderIdentity.from_text(str(before)) == before
    shutil.copytree(folder, tmp_path / "copy", symlinks=True)
    assert not before.is_same(of(tmp_path / "copy"))
    (tmp_path / "above").rename(tmp_path / "elsewhere")
    folder = tmp_path / "elsewhere" / "data"
    assert before.is_same(of(folder))
    # The copy takes the original's place, and so its path.
    folder.rename(tmp_path / "aside")
    (tmp_path / "copy").rename(folder)
    assert not before.is_same(of(folder))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ((7, 3, 1), True),
        ((7, 3, 2), True),  # the device has another number since the machine started again
        ((7, 4, 1), False),  # the root of another volume: many have the inode 2
        ((8, 3, 1), False),
        ((7, 0, 1), True),  # the file system has no number
        ((7, 0, 2), False),
    ],
)
def test_inode_and_file_system_count(other: tuple[int, int, int], same: bool) -> None:
    one = FolderIdentity(7, 3, 1)
    assert one.is_same(FolderIdentity(*other)) is same
    assert FolderIdentity(*other).is_same(one) is same


@pytest.mark.parametrize("text", ["", "1:2", "1:2:3:4", "a:b:c", "-1:2:3", "1:2:²", f"{os.sep}"])
def test_other_texts_are_none(text: str) -> None:
    assert FolderIdentity.from_text(text) is None


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert FolderIdentity.of(tmp_path / "gone") is None
