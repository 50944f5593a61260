"""Journals: results in files that are written over, and what the agent makes of them."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shoal.worker.home.spool import Spool
from shoal.worker.supervisor.shim.journal import LONGEST, SIZE, Journal, pending, settle
from shoal.worker.supervisor.shim.records import End, store

END = End(1.0, 0.1, 0, 1000, 0.01, None, "", [])


def record(number: int, size: int = 0) -> bytes:
    fields = {"id": str(number), "finished_at": float(number), "x": "x" * size}
    return json.dumps(fields).encode()


def ids(spool: Spool) -> list[str]:
    return [entry.id for entry in spool.pending()]


def put(journal: Journal, spool: Spool, number: int, size: int = 0) -> int:
    name, place = journal.append(str(spool.folder), record(number, size))
    spool.note(str(number), name, place)
    return place


def length(spool: Spool) -> int:
    (file,) = spool.folder.iterdir()
    return file.stat().st_size


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """What was synced, in order: the file's name, and what it held (of a folder, nothing)."""
    noted: list[tuple[str, bytes]] = []

    def note(fd: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        noted.append((path.name, path.read_bytes() if path.is_file() else b""))

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "fdatasync", note)
    return noted


def test_record_is_on_the_disk_before_its_place_is_known(
    tmp_path: Path, syncs: list[tuple[str, bytes]]
) -> None:
    journal = Journal(3)
    for number in range(2):
        journal.append(str(tmp_path), record(number))
        name, content = syncs[-1]
        assert name == "shim-3.lines"
        assert record(number) in content


def test_name_of_a_journal_is_on_the_disk_before_its_first_record_counts(
    tmp_path: Path, syncs: list[tuple[str, bytes]]
) -> None:
    Journal(0).append(str(tmp_path), record(1))
    assert [name for name, _ in syncs] == ["shim-0.lines", tmp_path.name, "shim-0.lines"]
    Journal(1).append(str(tmp_path), record(1))
    assert [name for name, _ in syncs][3:] == ["shim-1.lines", tmp_path.name, "shim-1.lines"]


def test_end_of_an_attempt_is_stored_in_the_journal_if_it_fits(tmp_path: Path) -> None:
    spool, journal = Spool(tmp_path / "spool"), Journal(0)
    launch = {
        "id": "7",
        "log_path": str(tmp_path / "7.log"),
        "record_path": str(spool.path("7")),
        "output_path": str(tmp_path / "output"),
    }
    for value in ("small", "large" * LONGEST):
        (tmp_path / "output").write_text(f"a={value}")
        message = json.loads(store(launch, END, None, journal))
        assert message["durable"]
        assert ("place" in message) == (not spool.path("7").exists()) == (value == "small")
        if "place" in message:
            spool.note("7", *message["place"])
        assert spool.get("7")["outputs"] == {"a": value}
        spool.remove("7")
        assert ids(spool) == []


def test_end_that_may_be_stored_twice_is_found_wherever_it_is(tmp_path: Path) -> None:
    spool, journals = Spool(tmp_path / "spool"), [Journal(number) for number in range(2)]
    launch = {"id": "7", "log_path": str(tmp_path / "log"), "record_path": str(spool.path("7"))}
    store(launch, END, None, journals[0])  # and then it was killed
    message = json.loads(store(launch, END, None, journals[1], again=True))
    assert message["durable"]
    assert "place" not in message
    assert ids(spool) == ["7"]
    spool.remove("7")
    assert ids(spool) == []


def test_journal_that_cannot_be_used_is_done_without(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    (spool.folder / "shim-0.lines").mkdir()
    launch = {"id": "7", "log_path": str(tmp_path / "log"), "record_path": str(spool.path("7"))}
    message = json.loads(store(launch, END, None, Journal(0)))
    assert message["durable"]
    assert "place" not in message
    assert spool.path("7").exists()
    with capture_logs() as logs:
        assert ids(spool) == ["7"]
    assert [entry["event"] for entry in logs] == ["journal cannot be read"]


def test_result_that_is_not_there_is_an_error(spool: Spool) -> None:
    with pytest.raises(ValueError):
        spool.get("7")
    put(Journal(0), spool, 1)
    with pytest.raises(ValueError):
        spool.get("7")


def test_results_wait_until_they_are_settled_also_for_the_next_agent(spool: Spool) -> None:
    journal = Journal(0)
    for number in (3, 1, 2):
        put(journal, spool, number)
    spool.remove("1")
    spool.remove("1")
    after_restart = Spool(spool.folder)
    assert ids(after_restart) == ["2", "3"]
    after_restart.remove("3")
    assert ids(spool) == ["2"]


def test_result_whose_place_was_not_reported_is_found(spool: Spool) -> None:
    """Its shim was killed before it could, and another has stored it once more."""
    for number in range(3):
        with closing(Journal(number)) as journal:
            journal.append(str(spool.folder), record(7))
            journal.append(str(spool.folder), record(77))
    assert spool.get("7")["id"] == "7"
    assert ids(spool) == ["7", "77"]
    spool.remove("7")
    assert ids(spool) == ids(Spool(spool.folder)) == ["77"]


def test_shim_goes_on_where_another_has_ended(spool: Spool) -> None:
    for number in (1, 2):
        with closing(Journal(0)) as journal:
            put(journal, spool, number)
    assert ids(spool) == ["1", "2"]
    assert length(spool) == SIZE


def test_full_journal_of_settled_results_begins_anew(spool: Spool) -> None:
    journal = Journal(0)
    for number in range(200):
        put(journal, spool, number, size=5_000)
        spool.remove(str(number))
    assert length(spool) == SIZE
    put(journal, spool, 1_000)
    assert ids(spool) == ["1000"]


def test_full_journal_keeps_every_result_that_waits(spool: Spool) -> None:
    journal = Journal(0)
    for number in range(50):
        put(journal, spool, number, size=5_000)
    assert ids(spool) == [str(number) for number in range(50)]
    assert length(spool) > 50 * 5_000
    for number in range(49):
        spool.remove(str(number))
    assert ids(spool) == ["49"]
    for number in range(100, 300):
        put(journal, spool, number, size=5_000)
        spool.remove(str(number))
        assert ids(spool) == ["49"]
    spool.remove("49")
    put(journal, spool, 1, size=5_000)
    assert ids(spool) == ["1"]


def test_journal_shrinks_when_what_has_waited_is_settled(spool: Spool) -> None:
    journal = Journal(0)
    for number in range(50):
        put(journal, spool, number, size=5_000)
    for number in range(50):
        spool.remove(str(number))
    for number in range(100):
        put(journal, spool, number, size=5_000)
        spool.remove(str(number))
    assert length(spool) == SIZE


@pytest.mark.parametrize("kept", [1, 5, 10, 40])
def test_half_written_record_is_none(spool: Spool, kept: int) -> None:
    with closing(Journal(0)) as journal:
        put(journal, spool, 1)
        place = put(journal, spool, 2)
    (file,) = spool.folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(content[: place + kept].ljust(len(content), b"\0"))
    with capture_logs() as logs:
        assert ids(Spool(spool.folder)) == ["1"]
    assert [entry["event"] for entry in logs] == ["result in a journal is damaged"]

    with closing(Journal(0)) as journal:
        put(journal, spool, 3)  # a new shim goes on behind it, and it is not read again
    with capture_logs() as logs:
        assert ids(Spool(spool.folder)) == ["1", "3"]
    assert not logs


def test_journal_has_one_writer(tmp_path: Path) -> None:
    first = Journal(0)
    first.append(str(tmp_path), record(1))
    with pytest.raises(BlockingIOError):
        Journal(0).append(str(tmp_path), record(2))
    first.append(str(tmp_path), record(3))


def test_journal_follows_its_launches_into_another_folder(tmp_path: Path) -> None:
    journal, spools = Journal(0), [Spool(tmp_path / name) for name in "ab"]
    for number, spool in enumerate(spools):
        put(journal, spool, number)
    assert [ids(spool) for spool in spools] == [["0"], ["1"]]


def test_settled_and_damaged_records_are_told_apart(tmp_path: Path) -> None:
    journal = Journal(0)
    places = [journal.append(str(tmp_path), record(number))[1] for number in range(4)]
    fd = os.open(tmp_path / "shim-0.lines", os.O_RDWR)
    settle(fd, places[0])
    os.pwrite(fd, b"?", places[1] + 20)
    found = list(pending(os.pread(fd, SIZE, 0)))
    os.close(fd)
    assert found == [(places[1], None), (places[2], record(2)), (places[3], record(3))]
