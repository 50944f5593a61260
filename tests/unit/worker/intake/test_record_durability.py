"""A record counts as stored when a power cut cannot take it away any more, and not before."""

import json
import os
from pathlib import Path

import pytest

from shoal.worker.home.spool import Spool
from shoal.worker.supervisor.shim.records import End, store, write_record


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
    log.write_text("of an empty log there is nothing to lose")
    launch = {"id": "7", "log_path": str(log), "record_path": str(folder / "7.json")}
    message = json.loads(store(launch, End(1.0, 0.1, 0, 1000, 0.01, None, "", [])))
    assert message["durable"]
    assert steps == ["data 7.log", "sync .7.json.tmp", "name 7.json", "sync spool"]


@pytest.mark.parametrize("removed", [False, True], ids=["empty", "removed"])
def test_log_without_content_is_not_waited_for(
    tmp_path: Path, steps: list[str], removed: bool
) -> None:
    path = tmp_path / "7.log"
    log = os.open(path, os.O_WRONLY | os.O_CREAT)
    if removed:
        os.write(log, b"this cannot be read any more")
        path.unlink()
    launch = {"id": "7", "log_path": str(path), "record_path": str(tmp_path / "7.json")}
    message = json.loads(store(launch, End(1.0, 0.1, 0, 1000, 0.01, None, "", []), log))
    os.close(log)
    assert message["record"]["log_bytes"] == 0
    assert "data 7.log" not in steps


def test_result_without_a_process_is_as_durable(tmp_path: Path, steps: list[str]) -> None:
    Spool(tmp_path / "spool").write("7", {"id": "7"})
    assert steps == ["sync .7.json.tmp", "name 7.json", "sync spool"]
