"""The storage of resources: in a folder, and at an S3 that moto plays."""

import logging
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from shoal.runtime.storage import PIECE, ObjectMissing, Storage, StorageError, cluster_folder

NAME = Storage.new_name("demo", "uid")
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an S3 with the bucket ``shoal``."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        import boto3

        client = boto3.client(
            "s3",
            endpoint_url=f"http://{host}:{port}",
            aws_access_key_id="a",
            aws_secret_access_key="b",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="shoal")
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def sign_in(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Let drivers find that S3."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)


@pytest.fixture(params=["folder", "s3"])
def storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Storage:
    if request.param == "folder":
        return Storage(str(request.getfixturevalue("tmp_path") / "resources"))
    sign_in(monkeypatch, request.getfixturevalue("s3"))
    return Storage("s3://shoal/resources")


def write(storage: Storage, name: str, *pieces: bytes) -> None:
    with storage.writing(name) as file:
        for piece in pieces:
            file.write(piece)


def read(storage: Storage, name: str) -> bytes:
    with storage.reading(name) as file:
        return b"".join(iter(lambda: file.read(PIECE), b""))


def test_object_comes_back_as_it_was_written(storage: Storage) -> None:
    for pieces in ((), (b"one",), (os.urandom(PIECE),) * 7):  # S3's parts have 5 MiB and more
        name = storage.new_name("demo", "uid")
        write(storage, name, *pieces)
        assert read(storage, name) == b"".join(pieces)


def test_object_is_removed_and_may_be_gone_already(storage: Storage) -> None:
    name = storage.new_name("demo", "uid")
    write(storage, name, b"one")
    assert read(storage, name) == b"one"
    storage.remove(name)
    storage.remove(name)
    with pytest.raises(ObjectMissing, match=f"cannot read {name} .*it is not there"):
        read(storage, name)


def test_upload_that_breaks_off_leaves_nothing_after_its_removal(storage: Storage) -> None:
    name = storage.new_name("demo", "uid")
    with suppress(ZeroDivisionError), storage.writing(name) as file:
        file.write(b"half")
        _ = 1 / 0
    storage.remove(name)
    with pytest.raises(ObjectMissing):
        read(storage, name)


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
