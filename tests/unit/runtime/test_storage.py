"""The storage of resources: in a folder, and at an S3 that moto plays."""

import stat
from pathlib import Path

import pytest

from shoal.runtime.storage import ObjectMissing, Storage, StorageError, cluster_folder
from tests.support.storage import StorageContract, read, write
from tests.support.storage import s3 as s3
from tests.support.storage import storage as storage

NAME = Storage.new_name("demo", "uid")


class TestStorage(StorageContract):
    """The contract, in a folder and at an S3."""


def test_folder_is_private(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "deep" / "resources"))
    write(storage, NAME, b"one")
    folder = tmp_path / "deep" / "resources" / cluster_folder("uid")
    for one in (folder, folder / "demo"):
        assert stat.S_IMODE(one.stat().st_mode) == 0o700


def test_storage_that_cannot_be_used_says_which_setting_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    storage = Storage(str(tmp_path / "file"))
    with pytest.raises(StorageError, match="it is the setting resources_url"):
        write(storage, NAME, b"one")
    with pytest.raises(StorageError, match=r"cannot write .* in .*nowhere://x"):
        write(Storage("nowhere://x"), NAME, b"one")


def test_objects_of_earlier_versions_are_read_and_of_each_cluster_apart(storage: Storage) -> None:
    former = f"demo/{'a' * 32}"
    own, other = storage.new_name("demo", "uid"), storage.new_name("demo", "another")
    for name in (former, own, other):
        write(storage, name, name.encode())
        assert read(storage, name) == name.encode()
    assert own.split("/")[0] == cluster_folder("uid") != other.split("/")[0]
    fixed = {storage.name_for("demo", uid, 7, 0) for uid in ("uid", "another")}
    assert len(fixed) == 2, "attempts of a copy have the ids of the original's"
    assert {name.split("/")[0] for name in fixed} == {own.split("/")[0], other.split("/")[0]}


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "demo/../../x",
        "/etc/passwd",
        "demo/x",
        "",
        "demo//x",
        f"{'a' * 32}/../{'b' * 32}",
        f"{'a' * 31}/demo/{'b' * 32}",
    ],
)
def test_name_that_leads_elsewhere_is_none(tmp_path: Path, name: str) -> None:
    storage = Storage(str(tmp_path / "resources"))
    with pytest.raises(ObjectMissing, match="is not a name of an object"):
        write(storage, name, b"one")
    with pytest.raises(ObjectMissing):
        storage.remove(name)
    assert list(tmp_path.iterdir()) == []
