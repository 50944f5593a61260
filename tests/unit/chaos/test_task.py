"""The ledger of a task shows double runs, children left behind and the content of logs.

An offence that the task does not write down is one that the checker cannot see.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.judging import leaks
from tests.chaos.workload import ledger
from tests.chaos.workload.dags import MARKER_VARIABLE, TASK_PROGRAM
from tests.chaos.workload.ledger import Kind, Row
from tests.chaos.workload.task import log_text

LONG_S = 600
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts attempts of one task; everything they leave behind is killed at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start_one(attempt: int = 1, **behaviour: Any) -> subprocess.Popen[bytes]:
        environment = {
            "SHOAL_WORKFLOW_INSTANCE_ID": "1",
            "SHOAL_TASK": "a",
            "SHOAL_ATTEMPT": str(attempt),
            "SHOAL_TASK_INSTANCE_ID": str(attempt + 10),
            "SHOAL_EPOCH": "50",
            MARKER_VARIABLE: tmp_path.name,
        }
        command = [sys.executable, "-I", "-S", str(TASK_PROGRAM), str(tmp_path)]
        process = subprocess.Popen(
            [*command, json.dumps(behaviour)],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield start_one
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    for row in ledger.read(tmp_path):
        if row.kind is Kind.CHILD and lives(row):
            os.kill(row.pid, signal.SIGKILL)


def lives(row: Row) -> bool:
    return bool(list(leaks.survivors("no marker", [row])))


def until(folder: Path, kind: Kind) -> Row:
    """Wait for a row of this kind."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for row in ledger.read(folder):
            if row.kind is kind:
                return row
        time.sleep(0.02)
    raise AssertionError(f"no {kind} row in {folder}")


def kinds(folder: Path) -> list[Kind]:
    return [row.kind for row in ledger.read(folder)]


def test_whole_run_leaves_start_and_end(start: Start, tmp_path: Path) -> None:
    out, _ = start(lines=3).communicate()
    (run,) = ledger.runs(ledger.read(tmp_path))
    assert out == log_text(1, "a", 1, 3)
    assert run.end is not None
    assert (run.exit, run.end.size, run.end.sha256) == (0, len(out), sha256(out).hexdigest())
    assert run.start.boot_ns < run.end.boot_ns
    assert (run.start.task_instance_id, run.start.epoch) == (11, 50)


def test_second_run_at_the_same_time_says_so(start: Start, tmp_path: Path) -> None:
    start(s=LONG_S)
    until(tmp_path, Kind.START)
    start(attempt=2).wait()
    assert kinds(tmp_path) == [Kind.START, Kind.DUPLICATE, Kind.START, Kind.END]


@pytest.mark.parametrize("kind", ["fork", "setsid", "double"])
def test_child_left_behind_is_found_alive_and_counts_as_a_run(
    start: Start, tmp_path: Path, kind: str
) -> None:
    start(children=[kind]).wait()
    child = until(tmp_path, Kind.CHILD)
    assert lives(child)
    start(attempt=2).wait()
    assert Kind.DUPLICATE in kinds(tmp_path)
    os.kill(child.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while lives(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not lives(child)


def test_process_with_our_marker_is_found(start: Start, tmp_path: Path) -> None:
    process = start(s=LONG_S)
    until(tmp_path, Kind.START)
    (offence,) = leaks.survivors(tmp_path.name, [])
    assert (offence.instance, offence.task) == (1, "a")
    assert f"process {process.pid} " in offence.text
    assert list(leaks.survivors("another marker", [])) == []


def test_row_torn_by_a_kill_spoils_no_other(start: Start, tmp_path: Path) -> None:
    start().wait()
    (file,) = tmp_path.glob("*.jsonl")
    with file.open("ab") as torn:
        torn.write(b'\n{"kind": "START", "inst')
    start(attempt=2).wait()
    assert kinds(tmp_path) == [Kind.START, Kind.END, Kind.START, Kind.END]


def test_overlapping_times_are_found_whatever_lies_between(start: Start, tmp_path: Path) -> None:
    start().wait()
    start_row, end_row = ledger.read(tmp_path)

    def run(start_ns: int, end_ns: int | None) -> ledger.Run:
        begun = Row(**{**vars(start_row), "boot_ns": start_ns})
        ended = None if end_ns is None else Row(**{**vars(end_row), "boot_ns": end_ns})
        return ledger.Run(begun, ended)

    long, killed, short = run(10, 100), run(20, None), run(30, 40)
    assert ledger.overlaps([long, killed, short]) == [(long, killed), (long, short)]
    assert ledger.overlaps([run(10, 20), run(20, None), run(30, 40)]) == []
