"""What holds of every storage; and two of them: a folder, and an S3 that moto plays."""

import hashlib
import io
import logging
import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.runtime.log_archive import LogArchive
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.storage import PIECE, ObjectMissing, Storage

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


class StorageContract:
    """What holds of each storage that a fixture ``storage`` gives."""

    def test_object_comes_back_as_it_was_written(self, storage: Storage) -> None:
        for pieces in ((), (b"one",), (os.urandom(PIECE),) * 7):  # S3's parts have 5 MiB and more
            name = storage.new_name("demo", "uid")
            write(storage, name, *pieces)
            assert read(storage, name) == b"".join(pieces)

    def test_object_is_removed_and_may_be_gone_already(self, storage: Storage) -> None:
        name = storage.new_name("demo", "uid")
        write(storage, name, b"one")
        assert read(storage, name) == b"one"
        storage.remove(name)
        storage.remove(name)
        with pytest.raises(ObjectMissing, match=f"cannot read {name} .*it is not there"):
            read(storage, name)

    def test_upload_that_breaks_off_leaves_nothing_after_its_removal(
        self, storage: Storage
    ) -> None:
        name = storage.new_name("demo", "uid")
        with suppress(ZeroDivisionError), storage.writing(name) as file:
            file.write(b"half")
            _ = 1 / 0
        storage.remove(name)
        with pytest.raises(ObjectMissing):
            read(storage, name)


UID = "7d8c9a31-0f5e-4c57-9a52-6f6f3a1f7c11"


class LogArchiveContract:
    """What holds of an archive at each place that a fixture ``url`` gives."""

    def test_log_comes_back_in_ranges(self, url: str) -> None:
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

    def test_log_that_has_grown_takes_the_place_of_the_old_one(self, url: str) -> None:
        archive = LogArchive(url, UID)
        archive.put(1, 5, io.BytesIO(b"one"))
        archive.put(1, 5, io.BytesIO(b"one and more"))
        assert archive.read(1, 5, 0, archive.size(1, 5)) == b"one and more"

    def test_instances_are_listed_by_thousands_and_removed_whole(self, url: str) -> None:
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

    def test_copy_that_breaks_off_is_no_log(self, url: str) -> None:
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


def put_resource(
    cluster: ClusterSettings, path: str, content: bytes, version: int = 1
) -> pb.Resource:
    """Store a file as the API does; return what a payload says of it."""
    name = Storage.new_name("tests", "uid")
    with Storage.of(cluster).writing(name) as file:
        file.write(content)
    digest = hashlib.sha256(content).hexdigest()
    return pb.Resource(path=path, version=version, sha256=digest, size=len(content), object=name)
