"""What of an attempt's folder is written into the storage, and what is not."""

import errno
import hashlib
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.runtime.storage import Storage
from shoal.worker.home import upload
from shoal.worker.home.upload import Leaving, Upload
from shoal.worker.processes.work_files import ANSWER_FILE

LARGEST = 1 << 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the attempt; that of the helper is beside it."""
    helper, attempt = tmp_path / "helper", tmp_path / "attempt"
    for one in (helper, attempt / "out"):
        one.mkdir(parents=True)
    monkeypatch.chdir(helper)
    monkeypatch.setattr(upload, "PAUSES_S", ())
    return attempt


def stored(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *files: str, storage: str = ""
) -> tuple[int, str, list[str]]:
    """Run the helper; return its exit code, its answer and the objects that there are then."""
    root = folder.parent / "storage"
    leaving = [
        Leaving(file, f"to/{file}", f"demo/{number:032x}") for number, file in enumerate(files)
    ]
    errand = Upload(storage or str(root), str(folder), LARGEST, leaving)
    monkeypatch.setattr(sys, "stdin", io.StringIO(errand.to_json()))
    code = upload.main()
    objects = [one.name for one in root.rglob("*") if one.is_file()]
    return code, Path(ANSWER_FILE).read_text(), sorted(objects)


def test_files_are_written_with_their_sizes_and_checksums(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(LARGEST)
    (folder / "out" / "a b").write_bytes(content)
    (folder / "empty").touch()
    code, answer, objects = stored(monkeypatch, folder, "out/a b", "empty")
    assert code == 0, answer
    assert json.loads(answer) == [
        {"path": "to/out/a b", "sha256": hashlib.sha256(content).hexdigest(), "size": LARGEST},
        {"path": "to/empty", "sha256": hashlib.sha256().hexdigest(), "size": 0},
    ]
    assert objects == [f"{number:032x}" for number in range(2)]
    with Storage(str(folder.parent / "storage")).reading(f"demo/{0:032x}") as file:
        assert file.read(2 * LARGEST) == content


def _link(folder: Path) -> None:
    (folder / "out" / "a").symlink_to("../ok")


def _link_above(folder: Path) -> None:
    (folder / "out").rmdir()
    (folder / "real").mkdir()
    (folder / "real" / "a").write_text("one")
    (folder / "out").symlink_to("real")


def _hard_link(folder: Path) -> None:
    secret = folder.parent / "secret"
    secret.write_text("not the task's")
    (folder / "out" / "a").hardlink_to(secret)


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "out" / "a")


def _folder(folder: Path) -> None:
    (folder / "out" / "a").mkdir()


def _large(folder: Path) -> None:
    with (folder / "out" / "a").open("wb") as file:
        file.truncate(LARGEST + 1)


def _nothing(folder: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_nothing, "is not there: the task has made no such file in its folder"),
        (_link, "cannot be used: Too many levels of symbolic links; links are not followed"),
        (_link_above, "cannot be used: Not a directory; links are not followed"),
        (_hard_link, "has other names, too (hard links)"),
        (_pipe, "is not a file"),
        (_folder, "is a folder; name one file of it"),
        (_large, "is larger than 1 MiB, which a resource may have"),
    ],
)
def test_what_is_no_file_of_its_own_is_refused_before_anything_is_written(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path], None],
    words: str,
) -> None:
    (folder / "ok").write_text("one")
    make(folder)
    code, answer, objects = stored(monkeypatch, folder, "ok", "out/a")
    assert (code, objects) == (1, [])
    assert answer.startswith(f"publish: out/a {words}")


def test_file_that_grows_while_it_is_read_is_not_stored_beyond_the_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a").write_bytes(b"x" * 10)
    monkeypatch.setattr(upload, "_problem", lambda found, largest: None)
    with (folder / "a").open("ab") as file:
        file.write(b"y" * LARGEST)
    code, answer, objects = stored(monkeypatch, folder, "a")
    assert (code, objects) == (1, [])
    assert "is larger than 1 MiB" in answer


def test_storage_that_takes_nothing_says_which_setting_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a").write_text("one")
    code, answer, _ = stored(monkeypatch, folder, "a", storage="/proc/nowhere")
    assert code == 1
    assert "it is the setting resources_url" in answer


def test_what_was_written_before_an_error_is_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (folder / name).write_text("one")
    real = upload._try_to_store

    def second_fails(storage: Storage, errand: Upload, leaving: Leaving) -> upload.Stored:
        if leaving.file == "b":
            raise OSError(errno.EIO, "Input/output error")
        return real(storage, errand, leaving)

    monkeypatch.setattr(upload, "_try_to_store", second_fails)
    code, answer, objects = stored(monkeypatch, folder, "a", "b")
    assert (code, objects) == (1, [])
    assert "Input/output error" in answer
