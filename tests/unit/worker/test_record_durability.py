"""A record counts as stored when a power cut cannot take it away any more, and not before."""

import os
import resource
from pathlib import Path

import pytest

from shoal.worker.launcher_attempt import Attempt
from shoal.worker.launcher_records import Job, RecordWriter, write_record
from shoal.worker.spool import Spool


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of the disk, in order: "sync NAME", "data NAME", "name NAME"."""
    noted: list[str] = []
    fsync, fdatasync, rename = os.fsync, os.fdatasync, os.rename

    def note_sync(fd: int) -> None:
        noted.append(f"sync {_name(fd)}")
        fsync(fd)

    def note_data(fd: int) -> None:
        noted.append(f"data {_name(fd)}")
        fdatasync(fd)

    def note_rename(old: str, new: str) -> None:
        noted.append(f"name {Path(new).name}")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "fdatasync", note_data)
    monkeypatch.setattr(os, "rename", note_rename)
    return noted


def _name(fd: int) -> str:
    return Path(os.readlink(f"/proc/self/fd/{fd}")).name


def test_content_is_on_the_disk_before_it_gets_its_name(tmp_path: Path, steps: list[str]) -> None:
    write_record(str(tmp_path / "7.json"), {"id": "7"})
    assert steps == ["sync .7.json.tmp", "name 7.json"]


def test_name_is_on_the_disk_before_the_record_counts_as_stored(
    tmp_path: Path, steps: list[str]
) -> None:
    folder = tmp_path / "spool"
    log = tmp_path / "7.log"
    log.touch()
    writer = RecordWriter()
    for attempt in ("7", "8"):
        writer.add(Job(ended(attempt, folder, log)))
    done = writer.store_here()
    assert [job.error for job in done] == [None, None]
    assert steps[-1] == "sync spool"
    assert steps.index("data 7.log") < steps.index("name 7.json") < steps.index("sync spool")


def ended(attempt_id: str, folder: Path, log: Path) -> Attempt:
    """An attempt that has just ended well."""
    paths = {"log_path": str(log), "record_path": str(folder / f"{attempt_id}.json")}
    attempt = Attempt({"id": attempt_id, **paths}, 1, 0)
    attempt.end(0, resource.getrusage(resource.RUSAGE_SELF))
    return attempt


def test_result_without_a_process_is_as_durable(tmp_path: Path, steps: list[str]) -> None:
    Spool(tmp_path / "spool").write("7", {"id": "7"})
    assert steps == ["sync .7.json.tmp", "name 7.json", "sync spool"]
