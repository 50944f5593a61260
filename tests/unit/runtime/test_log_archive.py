"""The archive of finished logs: in a folder, and at an S3 that moto plays."""

import io
import os
from pathlib import Path

import pytest

from shoal.runtime.log_archive import LogArchive
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import ObjectMissing, StorageError
from tests.unit.runtime.test_storage import s3 as s3
from tests.unit.runtime.test_storage import sign_in

UID = "7d8c9a31-0f5e-4c57-9a52-6f6f3a1f7c11"


@pytest.fixture(params=["folder", "s3"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "folder":
        return str(request.getfixturevalue("tmp_path") / "logs")
    sign_in(monkeypatch, request.getfixturevalue("s3"))
    return f"s3://shoal/{request.node.name}"


def test_log_comes_back_in_ranges(url: str) -> None:
    archive = LogArchive(url, UID)
    content = os.urandom(9_000_000)  # S3's parts have 5 MiB and more
    assert archive.put(1234, 5, io.BytesIO(content)) == len(content)
    assert archive.size(1234, 5) == len(content)
    assert archive.read(1234, 5, 0, len(content)) == content
    assert archive.read(1234, 5, 4_999_990, 5_000_010) == content[4_999_990:5_000_010]
    assert archive.read(1234, 5, 10, 10) == b""
    archive.put(1234, 6, io.BytesIO(b""))
    assert (archive.size(1234, 6), archive.read(1234, 6, 0, 0)) == (0, b"")
    with pytest.raises(ObjectMissing, match="storage of finished logs"):
        archive.size(1234, 7)


def test_log_that_has_grown_takes_the_place_of_the_old_one(url: str) -> None:
    archive = LogArchive(url, UID)
    archive.put(1, 5, io.BytesIO(b"one"))
    archive.put(1, 5, io.BytesIO(b"one and more"))
    assert archive.read(1, 5, 0, archive.size(1, 5)) == b"one and more"


def test_instances_are_listed_by_thousands_and_removed_whole(url: str) -> None:
    archive, other = LogArchive(url, UID), LogArchive(url, "another cluster")
    assert archive.thousands() == []
    assert archive.instances(3) == []
    for instance in (7, 999, 1000, 3001):
        for task in (1, 2):
            archive.put(instance, task, io.BytesIO(b"x"))
    other.put(7, 1, io.BytesIO(b"other"))
    assert archive.thousands() == [0, 1, 3]
    assert archive.instances(0) == [7, 999]
    archive.remove(7)
    archive.remove(7)
    assert archive.instances(0) == [999]
    assert other.read(7, 1, 0, 5) == b"other"


def test_copy_that_breaks_off_is_no_log(url: str) -> None:
    class Torn(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell():
                raise OSError("the disk has gone")
            return super().read(10)

    archive = LogArchive(url, UID)
    archive.put(1, 5, io.BytesIO(b"the one before"))
    for task in (5, 6):
        with pytest.raises(OSError, match="the disk has gone"):
            archive.put(1, task, Torn(b"x" * 100))
    assert archive.read(1, 5, 0, 99) == b"the one before"
    with pytest.raises(ObjectMissing):
        archive.size(1, 6)


def test_folder_holds_nothing_half_done_and_is_private(tmp_path: Path) -> None:
    archive = LogArchive(str(tmp_path / "logs"), UID)
    archive.put(1, 5, io.BytesIO(b"one"))
    (file,) = (path for path in (tmp_path / "logs").rglob("*") if path.is_file())
    assert file.name == "5.log"
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_archive_that_cannot_be_used_says_which_setting_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    archive = LogArchive(str(tmp_path / "file"), UID)
    with pytest.raises(StorageError, match="it is the setting logs_url"):
        archive.put(1, 5, io.BytesIO(b"one"))
    assert LogArchive.of(ClusterSettings(data=tmp_path), UID) is None


def test_log_is_read_under_the_name_that_the_cluster_had(url: str) -> None:
    former, present = LogArchive(url, "former"), LogArchive(url, "present")
    former.put(7, 1, io.BytesIO(b"before"))
    former.put(7, 2, io.BytesIO(b"of the original alone"))
    present.put(7, 2, io.BytesIO(b"after"))
    names = {1: ["present", "former"], 2: ["present"], 3: ["present", "former"]}
    both = LogArchive(url, "present", names.__getitem__)
    assert both.read(7, 1, 0, both.size(7, 1)) == b"before"
    assert both.read(7, 2, 0, both.size(7, 2)) == b"after"
    with pytest.raises(ObjectMissing):
        both.size(7, 3)
    both.remove(7)
    assert both.size(7, 1) == former.size(7, 1) == 6, "it belongs to the other cluster"
    with pytest.raises(ObjectMissing):
        both.size(7, 2)
