"""What a Spark Connect server goes on with after its users have left is ended."""

from pathlib import Path

import httpx
import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.worker.spark import servers as servers_module
from shoal.worker.spark.jobs import ServerJobs
from shoal.worker.spark.server import SparkServerProcess
from tests.integration.worker.agent.kit import InProcessWorker
from tests.integration.worker.spark.kit import Endless, ask, ended, servers
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]
pytestmark = pytest.mark.usefixtures("java")

# Ends well, as soon as a statement is at work that nobody waits for.
LEAVES = """\
import os, threading
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
{other}
is_working = threading.Event()
spark.registerProgressHandler(
    lambda inflight_tasks, **more: inflight_tasks and is_working.set()
)
query = lambda: spark.sql({endless!r}).collect()
threading.Thread(target=query, daemon=True).start()
assert is_working.wait(100)
os._exit(0)
"""
TWO_SECONDS = """\
select count(slept) from (
  select reflect('java.lang.Thread', 'sleep', 100L) as slept from range(0, 20, 1, 1))
"""
# Works in a session of its own making until a file is there.
STAYS = """\
import pathlib, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate().newSession()
pathlib.Path({here!r}).touch()
try:
    while not pathlib.Path({stop!r}).exists():
        assert spark.sql({two_seconds!r}).collect()
finally:
    spark.stop()
"""


@pytest.fixture
def ended_jobs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the jobs that were ended by way of the server's pages."""
    numbers = []
    end = ServerJobs.end

    def noted(jobs: ServerJobs, port: int, number: int) -> None:
        end(jobs, port, number)
        numbers.append(number)

    monkeypatch.setattr(ServerJobs, "end", noted)
    monkeypatch.setattr(servers_module, "CHECK_EVERY_S", 0.5)
    return numbers


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ports of the pages that have answered which jobs there are, once for each answer."""
    found: list[int] = []
    running = ServerJobs.running

    def noted(jobs: ServerJobs, port: int) -> dict[int, str]:
        answer = running(jobs, port)
        found.append(port)
        return answer

    monkeypatch.setattr(ServerJobs, "running", noted)
    monkeypatch.setattr(servers_module, "CHECK_EVERY_S", 0.5)
    return found


async def program(master: FakeMaster, script: str) -> int:
    """Submit a program that uses the worker's server; return its number."""
    params = {"script": script, "spark": "connect"}
    return await master.submit("PYTHON", params, tag=f"shoal-{hash(script)}")


async def test_unused_server_ends_what_sessions_of_a_program_have_left(
    master: FakeMaster, worker: InProcessWorker, endless: Endless, ended_jobs: list[int]
) -> None:
    script = LEAVES.format(other="spark = spark.newSession()", endless=endless.sql)
    report = await ended(master, await program(master, script))
    assert report.kind == pb.SUCCEEDED, report.reason
    await eventually(lambda: ended_jobs != [])
    report = await ended(master, await ask(master, "select 1"))
    assert report.kind == pb.SUCCEEDED
    assert len(servers()) == 1


async def test_job_of_one_that_has_left_is_ended_beside_others_that_go_on(
    master: FakeMaster,
    worker: InProcessWorker,
    endless: Endless,
    ended_jobs: list[int],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    async def no_release(server: SparkServerProcess, session: str) -> None:
        """Spark does not end what it begins after this."""

    monkeypatch.setattr(SparkServerProcess, "release", no_release)
    here, stop = tmp_path / "here", tmp_path / "stop"
    stays = await program(
        master, STAYS.format(here=str(here), stop=str(stop), two_seconds=TWO_SECONDS)
    )
    await eventually(here.exists, timeout_s=120.0)
    leaves = LEAVES.format(other="", endless=endless.sql)
    report = await ended(master, await program(master, leaves))
    assert report.kind == pb.SUCCEEDED, report.reason
    await eventually(lambda: ended_jobs != [])
    stop.touch()
    report = await ended(master, stays)
    assert report.kind == pb.SUCCEEDED, report.reason


async def test_pages_of_a_server_answer_the_worker_alone(
    master: FakeMaster, worker: InProcessWorker, ports: list[int]
) -> None:
    report = await ended(master, await ask(master, "select 1"))
    assert report.kind == pb.SUCCEEDED
    await eventually(lambda: len(ports) >= 2)
    [port] = set(ports)
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=DEADLINE_S
    ) as client:
        for path in ("/", "/jobs/", "/environment/", "/api/v1/applications", "/static/webui.js"):
            answer = await client.get(path)
            assert answer.status_code == httpx.codes.FORBIDDEN, path
            wrong = {"Authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJzaG9hbCJ9."}
            answer = await client.get(path, headers=wrong)
            assert answer.status_code == httpx.codes.FORBIDDEN, path
        answer = await client.post("/jobs/job/kill/?id=0")
        assert answer.status_code == httpx.codes.FORBIDDEN
    [server] = servers()
    assert "secretKey" not in server.args
