"""The archive of finished logs: in a folder, and at an S3 that moto plays."""

import io
from pathlib import Path

import pytest

from shoal.runtime.log_archive import LogArchive
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import ObjectMissing, StorageError
from tests.support.storage import UID, LogArchiveContract, sign_in
from tests.support.storage import s3 as s3


@pytest.fixture(params=["folder", "s3"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "folder":
        return str(request.getfixturevalue("tmp_path") / "logs")
    sign_in(monkeypatch, request.getfixturevalue("s3"))
    return f"s3://shoal/{request.node.name}"


class TestLogArchive(LogArchiveContract):
    """The contract, in a folder and at an S3."""


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
