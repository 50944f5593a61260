"""The line of a log that says why an attempt failed."""

import asyncio
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.worker.logs.files import LogStore
from shoal.worker.processes.program import ExitRecord
from shoal.worker.results.error_line import READ, found, plain, with_error_line
from shoal.worker.results.results import ERROR_LINE, result
from tests.support.growth import keeps, shortest_s
from tests.support.waiting import DEADLINE_S

JAVA = """\
26/11/21 10:00:00 INFO Executor: started
Exception in thread "main" java.lang.IllegalStateException: cannot load
\tat org.example.Load.main(Load.java:7)
\tSuppressed: java.io.IOException: not closed
\t\tat org.example.Load.close(Load.java:9)
Caused by: java.lang.RuntimeException: no table
\tat org.example.Load.table(Load.java:12)
\t... 1 more
Caused by: java.sql.SQLException: no route to host
\tat org.example.Load.connect(Load.java:20)
\t... 2 more
26/11/21 10:00:01 INFO ShutdownHookManager: Deleting directory /tmp/spark-1
"""
SPARK = """\
Traceback (most recent call last):
  File "/work/a.py", line 3, in <module>
    df.collect()
    ~~~~~~~~~~^^
py4j.protocol.Py4JJavaError: An error occurred while calling o45.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 1 times
\tat org.apache.spark.Scheduler.run(Scheduler.scala:1)
Caused by: java.io.FileNotFoundException: File file:/data/a.parquet does not exist
\tat java.base/java.lang.Thread.run(Thread.java:1)
"""
PYTHON_IN_SPARK = SPARK.replace(
    "Caused by: java.io.FileNotFoundException: File file:/data/a.parquet does not exist\n",
    "Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "/work/a.py", line 2, in f\n'
    "ZeroDivisionError: division by zero\n\n",
)


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", ""),
        (" \n\x00\n\n", ""),
        ("one\ntwo\n\n", "two"),
        ("no line end", "no line end"),
        ("shoal: environment: ml@3\none\nshoal: cancelling\n", "one"),
        (
            "shoal: environment: ml@3\nshoal: relation x does not exist\n",
            "relation x does not exist",
        ),
        ("start\nERROR first\nERROR second\nbye\n", "ERROR first"),
        ("gcc: a.c:1: error: no ';'\nmake: *** [all] 1\n", "gcc: a.c:1: error: no ';'"),
        ("0 errors, NO_ERROR, ERRORS\nend\n", "end"),
        ("INFO a\n\x1b[31mFATAL\x1b[0m: no disk\nINFO b\n", "FATAL: no disk"),
        ("10%\r20%\rERROR full\rbye\n", "ERROR full"),
        (JAVA, "java.sql.SQLException: no route to host"),
        (JAVA.split("Caused")[0], "java.lang.IllegalStateException: cannot load"),
        (JAVA + JAVA.split("Caused")[0], "java.lang.IllegalStateException: cannot load"),
        (SPARK, "java.io.FileNotFoundException: File file:/data/a.parquet does not exist"),
        (
            SPARK.split("Caused")[0],
            "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 1 "
            "times",
        ),
        (
            SPARK.split(": org")[0],
            "py4j.protocol.Py4JJavaError: An error occurred while calling o45.collectToPython.",
        ),
        (PYTHON_IN_SPARK, "ZeroDivisionError: division by zero"),
        ("Traceback (most recent call last):\n  File x\n", "  File x"),  # cut off
        ("TypeError: x\n    at f (/a.js:1:2)\n    at g (/a.js:2:2)\n", "TypeError: x"),
        (
            "Traceback (most recent call last):\n  File x\nKeyError: 1\n"
            "Exception ignored in: <function f>\nTraceback (most recent call last):\n  File y\n"
            "OSError: closed\n",
            "KeyError: 1",
        ),
    ],
)
def test_the_line_that_says_most(log: str, line: str) -> None:
    assert found(log) == line


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("{}['a']", "KeyError: 'a'"),
        (
            "print('ERROR before')\nint('x')",
            "ValueError: invalid literal for int() with base 10: 'x'",
        ),
        (
            "try:\n    1/0\nexcept Exception as e:\n    raise OSError('disk') from e",
            "OSError: disk",
        ),
        ("raise ValueError('one\\ntwo')", "ValueError: one"),
        (
            "def f():\n    raise LookupError('in it')\ntry:\n    f()\nexcept LookupError as e:\n"
            "    raise ExceptionGroup('all', [e])",
            "LookupError: in it",
        ),
        ("raise ExceptionGroup('all', [OSError('x')])", "ExceptionGroup: all (1 sub-exception)"),
        ("import atexit\natexit.register(print, 'bye')\nraise RuntimeError", "RuntimeError"),
        ("x = (", "SyntaxError: '(' was never closed"),
    ],
)
def test_tracebacks_as_python_writes_them(program: str, line: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", program],
        stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        check=False,
    )
    assert ran.returncode == 1
    assert plain(found(ran.stdout.decode())) == line


@pytest.mark.parametrize(
    ("line", "masks", "shown"),
    [
        ("a\tb\x00c\x07  d\u202e\u200be", (), "a b c d e"),
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b(B", (), "red x"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", (), "link"),
        ("key is s3cr3t!", ("s3cr3t",), "key is ***!"),
        ("to db://etl:pw@host", ("etl:pw",), "to db://***@host"),  # no part of a secret is left
        ("key is s3\x1b[0mcr3t!", ("s3cr3t",), "key is ***!"),  # as a terminal shows it
        ("x" * 498 + "s3cr3t", ("s3cr3t",), "x" * 498 + "***"[:1] + "…"),  # no part of it
        ("y" * 501, (), "y" * 499 + "…"),
        (
            "no postgresql://etl:pa:s@s@db:5432/x?a=b@c",
            (),
            "no postgresql://etl:***@db:5432/x?a=b@c",
        ),
        (
            "amqp://:only@mq http://u@h http://h:80/b@c",
            (),
            "amqp://:***@mq http://u@h http://h:80/b@c",
        ),
    ],
)
def test_what_is_left_of_a_line(line: str, masks: tuple[str, ...], shown: str) -> None:
    assert plain(line, masks) == shown


@pytest.mark.parametrize(
    "piece",
    [
        "\x1b", "\x1b[", "\x1b]", "\x1b[0", "\x1b(", "\n", "\nCaused by: ", "\n\tat x",
        "\n ", " at ",
        "Exception in thread \"", "ERROR", "error", "\n|", "\r", "://", "://a:", "a:", "a@",
        "\nTraceback (most recent call last):",
        "\n  + Traceback (most recent call last):\n |  | ", "a", " ",
    ],
)  # fmt: skip
def test_hostile_logs_take_no_time(piece: str) -> None:
    short, long = ((piece * size)[:size] for size in (READ // 8, READ))
    once_s = shortest_s(lambda: plain(found(short), ["s3cr3t"]))
    limit_s = max(0.1, 20 * once_s)  # 8 is linear, 64 square
    assert keeps(limit_s, lambda: plain(found(long), ["s3cr3t"]))


# -- of an attempt -------------------------------------------------------------------------------

RECORD = ExitRecord.from_json(
    {
        "id": "9",
        "outcome": "FAILED",
        "cause": "EXITED",
        "exit_code": 1,
        "signal": None,
        "reason": "exit code 1",
        "timed_out": False,
        "started_at": 1.0,
        "finished_at": 2.0,
        "max_rss_kb": 12_345,
        "cpu_s": 0.25,
        "context": {
            "worker_id": "w-1",
            "workflow_instance_id": 7,
            "task_instance_id": 9,
            "partition": 0,
            "workflow": "default.hello",
        },
    }
)


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return LogStore(tmp_path)


def given_log(store: LogStore, content: bytes) -> Path:
    path = store.path("default.hello", 7, 9)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


async def report_of(record: ExitRecord, store: LogStore) -> pb.Report:
    return result(await with_error_line(record, store))[1]


async def test_a_failure_is_reported_with_its_line_and_what_it_used(store: LogStore) -> None:
    given_log(store, b"one\nERROR: no disk\nbye\n")
    report = await report_of(RECORD, store)
    assert (report.error_line, report.cpu_s, report.max_rss_kb) == ("ERROR: no disk", 0.25, 12_345)


async def test_what_was_killed_has_one_too_since_masters_may_call_it_lost(store: LogStore) -> None:
    given_log(store, b"ERROR: no disk\n")
    killed = ExitRecord.from_json({**_fields(), "outcome": "KILLED", "cause": "KILL"})
    assert (await report_of(killed, store)).error_line == "ERROR: no disk"


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "SUCCEEDED", "exit_code": 0},
        {"context": {**RECORD.context, "not_yet_exit_code": 1}},
        {"context": {**RECORD.context, "workflow": "../../etc"}},
        {"max_rss_kb": 0},
    ],
    ids=["success", "look", "path", "no process"],
)
async def test_others_have_none(store: LogStore, change: dict[str, Any]) -> None:
    given_log(store, b"ERROR: no disk\n")
    assert (await report_of(ExitRecord.from_json({**_fields(), **change}), store)).error_line == ""


async def test_an_attempt_without_a_process_has_used_nothing_that_is_known(store: LogStore) -> None:
    report = await report_of(replace(RECORD, max_rss_kb=0), store)
    assert not report.HasField("cpu_s")
    assert not report.HasField("max_rss_kb")


async def test_what_the_task_type_says_itself_is_kept(store: LogStore) -> None:
    given_log(store, b"ERROR: no disk\n")
    told = replace(RECORD, context={**RECORD.context, ERROR_LINE: "no such table"})
    assert (await report_of(told, store)).error_line == "no such table"


async def test_only_the_end_of_a_long_log_is_read(store: LogStore) -> None:
    given_log(store, b"ERROR: old\n" + b"fine\n" * READ + b"last\n")
    assert (await report_of(RECORD, store)).error_line == "last"


async def test_a_log_of_one_long_line_has_the_beginning_of_its_end(store: LogStore) -> None:
    given_log(store, b"a" + b"x" * READ)
    assert (await report_of(RECORD, store)).error_line == "x" * 499 + "…"


async def test_bytes_that_are_no_text_can_be_reported(store: LogStore) -> None:
    given_log(store, b"ERROR \xff\xfe\xed\xa0\x80 \xf0\x9f\x90\x9f\n")
    report = await report_of(RECORD, store)
    assert pb.Report.FromString(report.SerializeToString()).error_line.startswith("ERROR \ufffd")
    assert report.error_line.endswith("\U0001f41f")


@pytest.mark.parametrize("planted", ["nothing", "folder", "fifo", "link", "device"])
async def test_a_log_that_is_none_is_no_failure(store: LogStore, planted: str) -> None:
    path = given_log(store, b"")
    path.unlink()
    match planted:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link":
            path.symlink_to("/etc/passwd")
        case "device":
            path.symlink_to("/dev/zero")
    async with asyncio.timeout(DEADLINE_S):  # a device and a fifo have no end
        report = await report_of(RECORD, store)
    assert (report.error_line, report.kind) == ("", pb.FAILED)


class StuckStore(LogStore):
    """Logs on a disk that does not answer until ``answers`` is set."""

    answers = threading.Event()

    def open_read(
        self, workflow: str, workflow_instance_id: int, task_instance_id: int
    ) -> BinaryIO:
        self.answers.wait(DEADLINE_S)
        return super().open_read(workflow, workflow_instance_id, task_instance_id)


async def test_a_disk_that_does_not_answer_keeps_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.worker.results.error_line.PATIENCE_S", 0.2)
    store = StuckStore(tmp_path)
    given_log(store, b"ERROR: no disk\n")
    report = await report_of(RECORD, store)
    store.answers.set()
    assert (report.error_line, report.kind) == ("", pb.FAILED), "it was not waited for"


def _fields() -> dict[str, Any]:
    return {name: value for name, value in vars(RECORD).items() if name != "durable"}
