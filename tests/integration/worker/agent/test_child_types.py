"""Task types whose work is done in a process of its own: outputs, failures, kills, settling."""

import asyncio
import json
import textwrap
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    everything_below,
    kill,
    log_text,
    spool,
    the_worker,
)
from tests.support.fake_master import FakeMaster
from tests.support.packages import installed
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

PLUGIN = """
from shoal.core.task_types import TaskParams
from shoal.worker.types.child.kind import ChildType

class Params(TaskParams):
    mode: str
    notes: str

class Remote(ChildType[Params]):
    Params = Params
    work = "remote_work:work"
    settles = True
    not_yet_exit_code = 75
"""
WORK = """
import asyncio, os, time
from pathlib import Path
from shoal.worker.types.child.outcome import NotYet, WorkFailed

def note(work, text):
    with Path(work.params.notes).open("a") as file:
        file.write(text + "\\n")

def work(work):
    note(work, f"begun {work.attempt} {work.tag}")
    match work.params.mode:
        case "outputs":
            source = work.data_source("db")
            password = work.secrets["token"] + source.password
            work.log("signs in with " + password)
            work.progress(1, 2, "rows")
            work.output(rows=2, names=["a"], source=source.host, port=source.port)
            work.output(stdin=os.readlink("/proc/self/fd/0"))
            work.settled()
        case "wrong":
            raise WorkFailed("no such table: see " + work.secrets["token"], permanent=True)
        case "again":
            raise WorkFailed("connection refused")
        case "look":
            raise NotYet("not there: see " + work.secrets["token"], again_s=90)
        case "broken":
            raise RuntimeError("a driver broke")
        case "obeys":
            work.on_cancel(lambda: note(work, "cancelled"))
            while not work.is_cancelled:
                time.sleep(0.02)
            work.settled()
        case "deaf":
            time.sleep(1000)
        case "far":
            work.progress(3, None, "rows", "reading")
            work.progress(4, 4, "rows", "reading")
            time.sleep(1000)
        case "coroutine":
            return asleep(work)

async def asleep(work):
    try:
        await asyncio.sleep(1000)
    finally:
        note(work, "cancelled")

def settle(work):
    if not Path(work.params.notes + ".refused").exists():
        note(work, f"settled {work.tag}")
    elif "twice" in Path(work.params.notes).read_text():
        raise WorkFailed("the server does not answer")
    else:
        note(work, "twice")
        raise WorkFailed("the server does not answer yet")
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with such a type."""
    modules = {"remote_type": textwrap.dedent(PLUGIN), "remote_work": textwrap.dedent(WORK)}
    point = {"REMOTE": "remote_type:Remote"}
    with installed(tmp_path, "shoal.task_types", point, **modules) as folder:
        monkeypatch.setenv("PYTHONPATH", str(folder))
        yield


@pytest.fixture
async def worker(cluster: ClusterSettings, master: FakeMaster) -> AsyncIterator[InProcessWorker]:
    async with InProcessWorker(cluster, env_pass=["PYTHONPATH"]) as worker:
        yield worker


async def submit(master: FakeMaster, notes: Path, mode: str) -> int:
    """Put one task with a secret and a data source into the queue."""
    source = pb.DataSource(kind="postgresql", host="db.example", port=5433, password="sesame")
    return await master.submit(
        "REMOTE",
        {"mode": mode, "notes": str(notes)},
        secrets={"token": "open-"},
        tag="shoal-0123",
        data_sources={"db": source},
        attempt=2,
    )


async def test_work_gets_all_it_needs_and_nothing_of_it_touches_the_disk(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, tmp_path: Path
) -> None:
    number = await submit(master, tmp_path / "notes", "outputs")
    task = await master.table.ended(number)
    assert task.report is not None
    assert (task.state, task.report.reason) == ("SUCCEEDED", "")
    assert dict(task.report.outputs) == {
        "rows": "2",
        "names": '["a"]',
        "source": "db.example",
        "port": "5433",
        "stdin": "/memfd:stdin (deleted)",
    }
    assert (tmp_path / "notes").read_text() == "begun 2 shoal-0123\n"
    assert log_text(cluster.data, number) == "signs in with ******\n"
    assert b"sesame" not in everything_below(cluster.data)
    assert b"open-" not in everything_below(cluster.data)


@pytest.mark.parametrize(
    ("mode", "reason", "permanent"),
    [
        ("wrong", "no such table: see ***", True),
        ("again", "connection refused", False),
        ("broken", "RuntimeError: a driver broke", False),
    ],
)
async def test_failure_says_why_and_whether_to_try_again(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    tmp_path: Path,
    mode: str,
    reason: str,
    permanent: bool,
) -> None:
    number = await submit(master, tmp_path / "notes", mode)
    task = await master.table.ended(number)
    assert task.report is not None
    assert (task.state, task.report.reason) == ("FAILED", reason)
    assert task.report.permanent is permanent
    assert f"shoal: {reason}\n" in log_text(cluster.data, number)
    # It did not say that nothing goes on elsewhere, so somebody has looked.
    assert (tmp_path / "notes").read_text().endswith("settled shoal-0123\n")
    await eventually(lambda: spool(cluster.data) == [])


@pytest.mark.parametrize(
    ("mode", "notes"),
    [
        ("obeys", ["cancelled"]),
        ("coroutine", ["cancelled", "settled shoal-0123"]),
        ("deaf", ["settled shoal-0123"]),
    ],
)
async def test_killed_is_reported_when_nothing_goes_on_elsewhere(
    master: FakeMaster,
    worker: InProcessWorker,
    channels: Channels,
    tmp_path: Path,
    mode: str,
    notes: list[str],
) -> None:
    file = tmp_path / "notes"
    number = await submit(master, file, mode)
    await eventually(file.exists)
    await kill(channels, await the_worker(master.session), number)
    task = await master.table.ended(number)
    assert task.state == "KILLED"
    assert file.read_text().splitlines() == ["begun 2 shoal-0123", *notes]


async def test_what_cannot_be_settled_is_not_called_killed(
    master: FakeMaster,
    worker: InProcessWorker,
    channels: Channels,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shoal.worker.results.settlement.ALL_TRIES_S", 3.0)
    file = tmp_path / "notes"
    (tmp_path / "notes.refused").touch()
    number = await submit(master, file, "deaf")
    await eventually(file.exists)
    await kill(channels, await the_worker(master.session), number)
    task = await master.table.ended(number)
    assert task.report is not None
    assert task.state == "FAILED"
    expected = "it may still run elsewhere, since settling failed: exit code 1"
    assert task.report.reason.endswith(expected)
    assert "twice" in file.read_text()


async def test_look_is_over_when_what_it_has_left_elsewhere_is(
    master: FakeMaster, worker: InProcessWorker, tmp_path: Path
) -> None:
    number = await submit(master, tmp_path / "notes", "look")
    report = (await master.table.ended(number)).report
    assert report is not None
    assert (report.kind, report.again_s) == (pb.RESCHEDULED, 90)
    assert report.reason == "not there: see ***"
    assert (tmp_path / "notes").read_text().endswith("settled shoal-0123\n")


async def test_look_that_cannot_be_settled_is_a_failure(
    master: FakeMaster,
    worker: InProcessWorker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shoal.worker.results.settlement.ALL_TRIES_S", 1.0)
    (tmp_path / "notes.refused").touch()
    number = await submit(master, tmp_path / "notes", "look")
    task = await master.table.ended(number)
    assert task.report is not None
    assert task.state == "FAILED"
    assert "it may still run elsewhere" in task.report.reason


async def test_worker_tells_how_far_the_work_is(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    channels: Channels,
    tmp_path: Path,
) -> None:
    number = await submit(master, tmp_path / "notes", "far")
    member = await the_worker(master.session)
    service = channels.progress(str(member.data["address"]))

    async def told() -> list[pb.TaskProgress]:
        return list((await service.Read(pb.ProgressRequest(task_instance_ids=[number, 99]))).tasks)

    async with asyncio.timeout(DEADLINE_S):
        while not (found := await told()) or found[0].done < 4:
            await asyncio.sleep(0.05)
    (progress,) = found
    assert (progress.task_instance_id, progress.done, progress.total) == (number, 4, 4)
    assert (progress.unit, progress.label) == ("rows", "reading")
    (file,) = cluster.data.rglob("progress.json")
    for junk in ("", "[]", "null", '{"done": "x", "at": 1}', '{"done": 1e999, "at": 1}', "{}"):
        file.write_text(junk)
        assert await told() == []
    await kill(channels, member, number)
    await master.table.ended(number)
    assert await told() == []


def test_request_survives_its_text() -> None:
    from shoal.core.data_sources import DataSource
    from shoal.worker.types.child.request import WorkRequest

    source = DataSource(
        name="d",
        kind="mariadb",
        host="h",
        port=1,
        database="b",
        user="u",
        options={"tls": True},
        password="pass",
        version=3,
    )
    request = WorkRequest(
        "m:f", "m:T", {"a": [1, "ü"]}, {"p": "1"}, 7, 1, "t", {"s": "x"}, {"d": source}
    )
    assert WorkRequest.from_json(request.to_json()) == request
    assert "pass" not in repr(request)
    json.loads(request.to_json())
