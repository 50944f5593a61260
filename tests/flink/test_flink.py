"""FLINK tasks in a real session cluster, in processes of their own."""

import random
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shoal.client.local.zookeeper import free_port
from shoal.core.data_sources import DataSource
from shoal.worker.types.flink.kind import Flink as Kind
from shoal.worker.types.flink.names import job_id
from tests.flink.conftest import Flink, Live
from tests.integration.drivers.kit import wait_until
from tests.integration.worker.sql.kit import Ended, Process

pytestmark = pytest.mark.timeout(300)

Begin = Callable[..., Process]


@pytest.fixture
def begin(flink: Flink, jar: Path, tmp_path: Path) -> Begin:
    """Returns what starts the process of an attempt: its task's tag, and what the job does."""

    def begin(
        tag: str,
        *arguments: str,
        attempt: int = 1,
        settle: bool = False,
        source: DataSource | None = None,
        **params: Any,
    ) -> Process:
        given = {"jar": str(jar), "main_class": "Jobs", "arguments": list(arguments), **params}
        folder = tmp_path / f"{tag}-{attempt}{'-settle' if settle else ''}"
        return Process(
            source or flink.source,
            given,
            folder,
            kind=Kind,
            attempt=attempt,
            settle=settle,
            tag=tag,
        )

    return begin


def ran(process: Process) -> Ended:
    with process:
        return process.ended()


def numbers(file: Path) -> list[int]:
    """Return what a job that streams has written."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def test_batch_job_with_its_accumulators(flink: Flink, begin: Begin) -> None:
    tag = flink.new_tag("batch")
    ended = ran(begin(tag, "batch", "1000", parallelism=2))
    assert (ended.code, ended.reason) == (0, ""), ended.log
    assert ended.outputs == {"job_id": job_id(tag, 1), "accumulators": {"numbers": 1000}}
    assert f"/#/job/running/{job_id(tag, 1)}/overview" in ended.log
    assert flink.jobs(tag) == {1: "FINISHED"}
    assert flink.jars(tag) == []


def test_failed_job_gives_its_root_exception(flink: Flink, begin: Begin) -> None:
    tag = flink.new_tag("failing")
    ended = ran(begin(tag, "failing"))
    assert (ended.code, ended.settled) == (1, True), ended.log
    said = "java.lang.IllegalStateException: the third number is wrong"
    assert ended.reason == f"the Flink job failed: {said}"
    assert "at Jobs$Failing.map(Jobs.java" in ended.log
    assert flink.jars(tag) == []


def test_killed_job_is_cancelled_in_flink(flink: Flink, begin: Begin, tmp_path: Path) -> None:
    tag = flink.new_tag("kill")
    with begin(tag, "stream", str(tmp_path / "numbers")) as process:
        wait_until(lambda: numbers(tmp_path / "numbers"))
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True), ended.log
    assert flink.jobs(tag) == {1: "CANCELED"}
    assert flink.jars(tag) == []


def test_stopped_with_a_savepoint_from_which_the_next_job_goes_on(
    flink: Flink, begin: Begin, tmp_path: Path
) -> None:
    tag, folder = flink.new_tag("stop"), tmp_path / "savepoints"
    how = {"cancel": "stop_with_savepoint", "savepoint_folder": folder.as_uri()}
    with begin(tag, "stream", str(tmp_path / "a"), parallelism=1, **how) as process:
        wait_until(lambda: len(numbers(tmp_path / "a")) > 20)
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True), ended.log
    assert flink.jobs(tag) == {1: "FINISHED"}
    [savepoint] = [line for line in ended.log.splitlines() if "savepoint file:" in line]
    last = numbers(tmp_path / "a")[-1]
    other = flink.new_tag("resume")
    given = {"parallelism": 1, "savepoint": savepoint.rpartition(" ")[2], "wait": "running"}
    ended = ran(begin(other, "stream", str(tmp_path / "b"), **given))
    assert ended.code == 0, ended.log
    assert ended.outputs == {"job_id": job_id(other, 1)}
    wait_until(lambda: numbers(tmp_path / "b"))
    assert numbers(tmp_path / "b")[0] == last + 1
    assert flink.live(other) == [1]  # it goes on: the task has succeeded when it ran
    assert ran(begin(other, "stream", "x", settle=True)).code == 0
    assert flink.live(other) == []


def test_stop_without_a_folder_cancels_and_says_so(
    flink: Flink, begin: Begin, tmp_path: Path
) -> None:
    tag = flink.new_tag("nowhere")
    how = {"cancel": "stop_with_savepoint"}
    with begin(tag, "stream", str(tmp_path / "numbers"), **how) as process:
        wait_until(lambda: numbers(tmp_path / "numbers"))
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True)
    assert "no savepoint, the job is cancelled without" in ended.log
    assert "savepoint-dir" in ended.log
    assert flink.jobs(tag) == {1: "CANCELED"}


def test_job_that_somebody_stops_with_a_savepoint_has_it_as_output(
    flink: Flink, begin: Begin, tmp_path: Path
) -> None:
    tag = flink.new_tag("theirs")
    with begin(tag, "stream", str(tmp_path / "numbers")) as process:
        wait_until(lambda: numbers(tmp_path / "numbers"))
        body = {"targetDirectory": (tmp_path / "savepoints").as_uri(), "drain": False}
        flink.ask(f"/jobs/{job_id(tag, 1)}/stop", "POST", json=body)
        ended = process.ended()
    assert ended.code == 0, ended.log
    [found] = (tmp_path / "savepoints").iterdir()
    assert ended.outputs["savepoint"] == f"file:{found}"


def test_job_that_somebody_cancels_is_not_tried_again(
    flink: Flink, begin: Begin, tmp_path: Path
) -> None:
    tag = flink.new_tag("theirs")
    with begin(tag, "stream", str(tmp_path / "numbers")) as process:
        wait_until(lambda: numbers(tmp_path / "numbers"))
        flink.ask(f"/jobs/{job_id(tag, 1)}?mode=cancel", "PATCH")
        ended = process.ended()
    assert (ended.code, ended.settled) == (65, True)
    assert "the job was cancelled in Flink" in ended.reason


@pytest.mark.parametrize("cancel", ["cancel", "stop_with_savepoint"])
def test_job_of_a_dead_process_is_settled(
    flink: Flink, begin: Begin, tmp_path: Path, cancel: str
) -> None:
    tag = flink.new_tag("dead")
    how = {"cancel": cancel}
    if cancel != "cancel":
        how["savepoint_folder"] = (tmp_path / "savepoints").as_uri()
    with begin(tag, "stream", str(tmp_path / "numbers"), **how) as process:
        wait_until(lambda: numbers(tmp_path / "numbers"))
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
    assert flink.live(tag) == [1]
    ended = ran(begin(tag, settle=True, **how))
    assert (ended.code, ended.settled) == (0, True), ended.log
    assert flink.jobs(tag) == {1: "CANCELED" if cancel == "cancel" else "FINISHED"}
    assert ("savepoint file:" in ended.log) is (cancel != "cancel")


def test_second_attempt_ends_the_first_ones_job_before_its_own_begins(
    flink: Flink, begin: Begin, tmp_path: Path
) -> None:
    tag = flink.new_tag("second")
    with begin(tag, "stream", str(tmp_path / "a")) as first:
        wait_until(lambda: numbers(tmp_path / "a"))
        first.signal(signal.SIGSTOP)  # its worker is lost; the job goes on
        live = Live(flink, tag)
        with begin(tag, "stream", str(tmp_path / "b"), attempt=2) as second:
            wait_until(lambda: live.look() == [2])
            wait_until(lambda: numbers(tmp_path / "b"))
            assert live.most == 1
            second.signal(signal.SIGTERM)
            assert second.ended().code == 143
    assert flink.jobs(tag) == {1: "CANCELED", 2: "CANCELED"}


def test_second_attempt_resumes_where_the_first_ones_job_was_stopped(
    flink: Flink, begin: Begin, tmp_path: Path
) -> None:
    tag, folder = flink.new_tag("again"), tmp_path / "savepoints"
    how = {
        "cancel": "stop_with_savepoint",
        "savepoint_folder": folder.as_uri(),
        "resume": True,
        "parallelism": 1,
    }
    with begin(tag, "stream", str(tmp_path / "a"), **how) as first:
        wait_until(lambda: numbers(tmp_path / "a"))
        first.signal(signal.SIGKILL)
        first.ended()
    with begin(tag, "stream", str(tmp_path / "b"), attempt=2, **how) as second:
        wait_until(lambda: numbers(tmp_path / "b"))
        assert numbers(tmp_path / "b")[0] == numbers(tmp_path / "a")[-1] + 1
        second.signal(signal.SIGTERM)
        assert second.ended().code == 143
    assert flink.jobs(tag) == {1: "FINISHED", 2: "FINISHED"}


def test_settling_an_old_attempt_leaves_the_newer_ones_job(
    flink: Flink, begin: Begin, tmp_path: Path
) -> None:
    tag = flink.new_tag("old")
    with begin(tag, "stream", str(tmp_path / "a"), attempt=2) as process:
        wait_until(lambda: numbers(tmp_path / "a"))
        assert ran(begin(tag, settle=True)).code == 0  # of attempt 1
        assert flink.live(tag) == [2]
        process.signal(signal.SIGTERM)
        assert process.ended().code == 143


def test_flink_refuses_the_same_attempt_twice(flink: Flink, begin: Begin) -> None:
    tag = flink.new_tag("twice")
    assert ran(begin(tag, "batch", "10")).code == 0
    ended = ran(begin(tag, "batch", "10"))
    assert ended.code == 1
    assert "has already been submitted" in ended.reason
    assert flink.jobs(tag) == {1: "FINISHED"}


def test_program_that_fails_behind_its_first_job_leaves_none(
    flink: Flink, begin: Begin, tmp_path: Path
) -> None:
    tag = flink.new_tag("two")
    ended = ran(begin(tag, "two", str(tmp_path / "numbers")))
    assert (ended.code, ended.settled) == (1, True), ended.log
    assert "Cannot have more than 1" in ended.reason
    assert flink.live(tag) == []
    assert flink.jars(tag) == []


@pytest.mark.parametrize(
    ("arguments", "params", "code", "said"),
    [
        ([], {"main_class": "Nope"}, 65, "entry point class 'Nope' was not found in the jar"),
        ([], {"main_class": ""}, 65, "No manifest found in jar file"),
        (["nothing"], {}, 65, "the program has no job: it never calls execute()"),
        (["nonesuch"], {}, 1, "java.lang.IllegalArgumentException: no such job: nonesuch"),
        (["stream", "x"], {"savepoint": "/no/such/savepoint"}, 1, "Cannot find checkpoint or"),
        ([], {"jar": "/no/such.jar"}, 65, "there is no file /no/such.jar on this worker"),
        ([], {"jar": __file__}, 65, "is not a jar"),
    ],
)
def test_jobs_that_cannot_be_started(
    flink: Flink,
    begin: Begin,
    arguments: list[str],
    params: dict[str, Any],
    code: int,
    said: str,
) -> None:
    tag = flink.new_tag("wrong")
    ended = ran(begin(tag, *arguments, **params))
    assert (ended.code, ended.settled) == (code, True), ended.log
    assert said in ended.reason
    assert "Traceback" not in ended.log
    assert flink.live(tag) == []
    assert flink.jars(tag) == []


def test_nobody_listens(flink: Flink, begin: Begin) -> None:
    tag = flink.new_tag("closed")
    source = replace(flink.source, port=free_port())
    ended = ran(begin(tag, "batch", "10", source=source))
    assert (ended.code, ended.settled) == (1, True)
    assert "no server listens there: is the job manager running" in ended.reason
    ended = ran(begin(tag, "batch", "10", source=source, attempt=2))
    assert (ended.code, ended.settled) == (1, False)  # that of an earlier attempt may live


@pytest.mark.parametrize("seed", range(30))
def test_killed_anywhere_no_two_jobs_live_and_none_is_forgotten(
    seed: int, flink: Flink, begin: Begin, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    tag = flink.new_tag("seed")
    file, last = tmp_path / "a", tmp_path / "b"
    does = (
        ["slow-main", str(file), str(chance.randrange(2_000))]
        if seed % 2
        else ["stream", str(file)]
    )
    live = Live(flink, tag)
    how = signal.SIGKILL if seed % 3 else signal.SIGTERM
    with begin(tag, *does) as process:
        process.until("submitting" if chance.random() < 0.7 else "Flink 2")
        live.look_for(chance.uniform(0, 2.0))
        process.signal(how)
        ended = process.ended()
    assert ended.settled is (how == signal.SIGTERM)
    if not ended.settled and chance.random() < 0.5:
        settled = ran(begin(tag, *does, settle=True))
        assert (settled.code, settled.settled) == (0, True), settled.log
    if how == signal.SIGTERM or seed % 5 == 0:
        settled = ran(begin(tag, *does, settle=True))
        assert settled.code == 0, settled.log
        live.look_for(2.5)  # longer than any of the programs takes to start
        assert live.look() == []
    with begin(tag, "stream", str(last), attempt=2) as process:
        wait_until(lambda: live.look() == [2] and numbers(last))
        live.look_for(1.0)
        assert live.look() == [2]
        process.signal(signal.SIGTERM)
        assert process.ended().settled
    assert live.most == 1
    assert live.look() == []
    assert flink.jars(tag) == []
