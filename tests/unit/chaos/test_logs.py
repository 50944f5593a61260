"""The checker compares each log with what its task printed.

Without these tests a cut or a changed log could pass unnoticed.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.judging.logs import ArchivedLogs, CopyReader, LogMissing, LogReader, judge
from tests.chaos.records import FaultRecord
from tests.chaos.workload.ledger import Kind as RowKind
from tests.chaos.workload.task import log_text
from tests.unit.chaos.evidence import CLEAN, ROWS

PRINTED = {
    11: log_text(1, "first", 1, 3),
    12: log_text(1, "second", 1, 3),
    13: log_text(1, "second", 2, 3),
}
TASKS = {name: replace(task, lines=3) for name, task in CLEAN.instances[1].tasks.items()}
FULL = FaultRecord("disk-full", "w", 1.0, 2.0, 2.5, True, "full", spoils_disk=True)
GAVE_WAY = "404 the log was deleted when the worker's disk was nearly full"
EVIDENCE = replace(
    CLEAN,
    attempts=[replace(attempt, worker="w-1-0a1b") for attempt in CLEAN.attempts],
    instances={1: replace(CLEAN.instances[1], tasks=TASKS)},
    rows=[
        replace(row, size=len(log), sha256=hashlib.sha256(log).hexdigest())
        if row.kind is RowKind.END
        else row
        for row in ROWS
        for log in [PRINTED[row.task_instance_id]]
    ],
)


def reader(missing: str = "", /, **changed: bytes) -> LogReader:
    def read(task_instance_id: int) -> bytes:
        if missing:
            raise LogMissing(missing)
        return changed.get(f"log_{task_instance_id}", PRINTED[task_instance_id])

    return read


def test_what_was_printed_is_no_offence() -> None:
    assert list(judge(EVIDENCE, reader(), 100)) == []
    assert list(judge(EVIDENCE, reader(log_12=PRINTED[12][:20]), 100)) == []  # it was killed


@pytest.mark.parametrize(
    ("read", "rule"),
    [
        (reader(log_11=PRINTED[11][:-1]), "log of a complete run"),
        (reader(log_11=PRINTED[11].replace(b"line", b"Line")), "log of a complete run"),
        (reader(log_12=b"else"), "log of a killed run"),
    ],
)
def test_log_that_differs_is_an_offence(read: LogReader, rule: str) -> None:
    assert [offence.rule for offence in judge(EVIDENCE, read, 100)] == [rule]


def test_missing_log_is_an_offence_unless_a_full_disk_took_it() -> None:
    rules = [offence.rule for offence in judge(EVIDENCE, reader("404 gone"), 100)]
    assert rules == ["log is there"] * 3
    filled = replace(EVIDENCE, faults=[FULL])
    assert list(judge(filled, reader(GAVE_WAY), 100)) == []
    assert len(list(judge(filled, reader("404 gone"), 100))) == 3
    # The disk of somebody else, or nobody's, was full.
    others = replace(EVIDENCE, faults=[replace(FULL, target="v")])
    assert len(list(judge(others, reader(GAVE_WAY), 100))) == 3
    assert len(list(judge(EVIDENCE, reader(GAVE_WAY), 100))) == 3


def copies(missing: str = "", /, **changed: bytes) -> CopyReader:
    read = reader(missing, **changed)
    return lambda task_instance_id, _: read(task_instance_id)


def test_archive_holds_what_the_worker_has() -> None:
    assert list(judge(EVIDENCE, reader(), 100, copies())) == []
    for archived in (copies(log_11=PRINTED[11][:-1]), copies("it is not in the archive")):
        rules = {offence.rule for offence in judge(EVIDENCE, reader(), 100, archived)}
        assert rules == {"log in the archive"}
    filled = replace(EVIDENCE, faults=[FULL])
    assert list(judge(filled, reader(GAVE_WAY), 100, copies("it is not in the archive"))) == []


def test_copy_that_is_replaced_is_waited_for_and_one_that_stays_is_not_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that was copied while its task began is copied again when the task has ended."""
    (tmp_path / "11.log").write_bytes(b"")
    assert ArchivedLogs(tmp_path, 0.0)(11, PRINTED[11]) == b""
    with pytest.raises(LogMissing):
        ArchivedLogs(tmp_path, 0.0)(12, PRINTED[12])
    copied = (tmp_path / "11.log").write_bytes
    monkeypatch.setattr("time.sleep", lambda _: copied(PRINTED[11]))
    assert ArchivedLogs(tmp_path, 100.0)(11, PRINTED[11]) == PRINTED[11]
