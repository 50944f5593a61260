"""FLINK tasks against a server that answers as Flink's REST API does: a contract test.

``make test-flink`` runs tests on a real Flink.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shoal.core.data_sources import Option
from shoal.proto.tls import create_identity
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.probe import ProbeParams
from shoal.worker.types.child.request import WorkRequest
from shoal.worker.types.child.work import Work
from shoal.worker.types.flink import cluster, leftovers, progress
from shoal.worker.types.flink.names import jar_name, job_id
from shoal.worker.types.http.request import basic
from tests.integration.worker.flink.kit import TAG, Attempt
from tests.support.servers.flink_rest import MAIN_FAILED, NO_CLASS, STACK, FlinkRest, source_of
from tests.support.servers.http_server import HttpServer, Received, answer, says
from tests.support.waiting import eventually

FIRST, SECOND = job_id(TAG, 1), job_id(TAG, 2)
OTHER = job_id("shoal-another", 1)


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOOK_S", 0.005)
    monkeypatch.setattr(progress, "LOOK_S", 0.005)
    monkeypatch.setattr(leftovers, "LOOK_S", 0.005)


@pytest.fixture
def flink() -> FlinkRest:
    return FlinkRest()


@pytest.fixture
async def server(flink: FlinkRest) -> AsyncIterator[HttpServer]:
    async with flink.serve() as server:
        yield server


def asked(server: HttpServer) -> list[str]:
    """Return what a server was asked to do, and to show."""
    return [f"{one.method} {one.target.partition('?')[0]}" for one in server.received]


def place(server: HttpServer, request: str) -> int:
    return asked(server).index(request)


async def test_job_is_submitted_and_followed_and_its_jar_goes(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    flink.accumulators = [
        {"name": "rows", "type": "LongCounter", "value": "7"},
        {"name": "mean", "type": "DoubleCounter", "value": "0.5"},
        {"name": "what", "type": "Mine", "value": "x"},
    ]
    flink.stale = 3
    attempt = Attempt(
        tmp_path,
        source_of(server),
        arguments=["--day", "1"],
        parallelism=3,
        savepoint="s3://a/b",
        conf={"execution.checkpointing.interval": "10s"},
    )
    done = await attempt.ran()
    assert (done.code, done.settled) == (0, True), done
    assert done.outputs == {
        "job_id": FIRST,
        "accumulators": {"rows": 7, "mean": 0.5, "what": "x"},
    }
    assert flink.body == {
        "jobId": FIRST,
        "entryClass": "Job",
        "programArgsList": ["--day", "1"],
        "parallelism": 3,
        "savepointPath": "s3://a/b",
        "allowNonRestoredState": False,
        "flinkConfiguration": {"execution.checkpointing.interval": "10s"},
    }
    assert flink.jars == {}
    assert f"{server.url}/#/job/running/{FIRST}/overview" in done.log


async def test_task_succeeds_when_its_job_runs_if_that_is_what_it_waits_for(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    flink.states = ["CREATED", "RUNNING", "RUNNING", "RUNNING"]
    flink.tasks = {"RUNNING": 1, "SCHEDULED": 1}
    attempt = Attempt(tmp_path, source_of(server), wait="running")
    doing = asyncio.create_task(attempt.ran())
    await eventually(lambda: asked(server).count(f"GET /jobs/{FIRST}") > 2)
    assert not doing.done()
    flink.tasks = {"RUNNING": 2}
    done = await doing
    assert (done.code, done.outputs) == (0, {"job_id": FIRST})
    assert flink.jobs == {FIRST: "RUNNING"}


async def test_failed_job_gives_its_root_exception(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    flink.states = ["RUNNING", "FAILED"]
    done = await Attempt(tmp_path, source_of(server)).ran()
    said = "java.lang.IllegalStateException: the third number is wrong"
    assert (done.code, done.reason) == (1, f"the Flink job failed: {said}")
    assert done.settled
    assert "at Jobs$Failing.map" in done.log


async def test_jar_that_cannot_be_deleted_at_once_costs_no_job_its_life(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    flink.busy = 1
    done = await Attempt(tmp_path, source_of(server)).ran()
    assert done.code == 0
    assert "the uploaded jar could not be deleted" in done.log
    assert flink.jars == {}


async def test_large_accumulators_are_no_output(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    flink.accumulators = [{"name": "x", "type": "List", "value": "y" * 300_000}]
    done = await Attempt(tmp_path, source_of(server)).ran()
    assert (done.code, done.outputs["accumulators"]) == (0, {})
    assert "too large for an output" in done.log


# -- no two jobs, none forgotten -------------------------------------------------------------------


async def test_earlier_attempts_jobs_end_before_anything_is_submitted(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    flink.jobs = {FIRST: "RUNNING", OTHER: "RUNNING"}
    flink.jars = {"0a": jar_name(TAG, 1), "0c": jar_name("shoal-another", 1), "0d": "mine.jar"}
    done = await Attempt(tmp_path, source_of(server), attempt=2).ran()
    assert done.code == 0
    assert flink.jobs == {FIRST: "CANCELED", OTHER: "RUNNING", SECOND: "FINISHED"}
    assert flink.jars == {"0c": jar_name("shoal-another", 1), "0d": "mine.jar"}
    assert place(server, f"PATCH /jobs/{FIRST}") < place(server, "POST /jars/upload")


@pytest.mark.parametrize(
    ("first", "savepoint", "from_"),
    [
        ("FINISHED", "s3://bucket/savepoint-1", "s3://bucket/savepoint-1"),
        ("FINISHED", "", "s3://bucket/given"),
        ("FAILED", "s3://bucket/savepoint-1", "s3://bucket/given"),
        ("RUNNING", "s3://bucket/savepoint-1", "s3://bucket/savepoint-1"),
    ],
)
async def test_next_attempt_resumes_where_an_earlier_one_was_stopped(
    flink: FlinkRest, server: HttpServer, tmp_path: Path, first: str, savepoint: str, from_: str
) -> None:
    flink.jobs, flink.savepoint, flink.stale = {FIRST: first}, savepoint, 2
    how: dict[str, Any] = {"cancel": "stop_with_savepoint", "savepoint": "s3://bucket/given"}
    done = await Attempt(tmp_path, source_of(server), attempt=2, resume=True, **how).ran()
    assert done.code == 0
    assert flink.body["savepointPath"] == from_


async def test_attempt_that_cannot_end_an_earlier_ones_job_is_not_settled(tmp_path: Path) -> None:
    flink = FlinkRest(jobs={FIRST: "RUNNING"})
    async with flink.serve() as server:
        source = source_of(server)
    done = await Attempt(tmp_path, source, attempt=2).ran()
    assert (done.code, done.settled) == (1, False)
    assert "no server listens there" in done.reason
    done = await Attempt(tmp_path / "a", source).ran()
    assert (done.code, done.settled) == (1, True)


async def test_settling_waits_for_a_program_that_is_being_started(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    ours = STACK.format(main_class="Job")
    flink.starting = [[ours], ["idle", ours]]
    flink.jars = {"0a": jar_name(TAG, 1)}
    flink.on_clear = lambda: flink.jobs.setdefault(FIRST, "RUNNING")
    done = await Attempt(tmp_path, source_of(server)).ran(settling=True)
    assert (done.code, done.settled) == (0, True)
    assert flink.jobs == {FIRST: "CANCELED"}
    assert place(server, "DELETE /jars/0a") < place(server, "GET /jobmanager/thread-dump")


async def test_settling_fails_while_a_program_is_being_started(
    flink: FlinkRest, server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "STARTING_S", 0.05)
    flink.starting = [[STACK.format(main_class="Job")]] * 10_000
    done = await Attempt(tmp_path, source_of(server)).ran(settling=True)
    assert (done.code, done.settled) == (1, False)
    assert "is still being started" in done.reason


async def test_programs_of_others_are_not_waited_for(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    flink.starting = [[STACK.format(main_class="Another")]] * 10_000
    done = await Attempt(tmp_path, source_of(server)).ran(settling=True)
    assert (done.code, done.settled) == (0, True)


async def test_settling_leaves_newer_attempts_alone(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    flink.jobs = {FIRST: "RESTARTING", SECOND: "RUNNING"}
    flink.jars = {"0a": jar_name(TAG, 1), "0b": jar_name(TAG, 2)}
    done = await Attempt(tmp_path, source_of(server)).ran(settling=True)
    assert done.settled
    assert flink.jobs == {FIRST: "CANCELED", SECOND: "RUNNING"}
    assert flink.jars == {"0b": jar_name(TAG, 2)}


async def test_killed_when_flink_has_confirmed_the_end(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    flink.states = ["RUNNING"]
    doing = asyncio.create_task(Attempt(tmp_path, source_of(server)).ran())
    await eventually(lambda: f"GET /jobs/{FIRST}" in asked(server))
    doing.cancel()
    done = await doing
    assert (done.code, done.settled) == (143, True)
    assert flink.jobs == {FIRST: "CANCELED"}


async def test_killed_while_its_program_is_being_started(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    is_starting, never = asyncio.Event(), asyncio.Event()

    async def start(job: str) -> None:
        flink.starting = [[STACK.format(main_class="Job")]] * 2
        flink.on_clear = lambda: flink.jobs.setdefault(job, "RUNNING")
        is_starting.set()
        await never.wait()

    flink.on_run = start
    doing = asyncio.create_task(Attempt(tmp_path, source_of(server)).ran())
    await is_starting.wait()
    doing.cancel()
    done = await doing
    assert (done.code, done.settled) == (143, True)
    assert flink.jobs == {FIRST: "CANCELED"}
    assert flink.jars == {}


@pytest.mark.parametrize("savepoint", ["s3://bucket/savepoint-1", ""])
async def test_stopped_with_a_savepoint_or_cancelled_without(
    flink: FlinkRest, server: HttpServer, tmp_path: Path, savepoint: str
) -> None:
    flink.states, flink.savepoint = ["RUNNING"], savepoint
    how: dict[str, Any] = {"cancel": "stop_with_savepoint", "savepoint_folder": "s3://bucket"}
    doing = asyncio.create_task(Attempt(tmp_path, source_of(server), **how).ran())
    await eventually(lambda: f"GET /jobs/{FIRST}" in asked(server))
    doing.cancel()
    done = await doing
    assert (done.code, done.settled) == (143, True)
    assert flink.jobs == {FIRST: "FINISHED" if savepoint else "CANCELED"}
    said = "shoal: savepoint s3://bucket/savepoint-1" if savepoint else "x.Exception: disk full"
    assert said in done.log
    assert (f"PATCH /jobs/{FIRST}" in asked(server)) is (not savepoint)


async def test_job_that_somebody_cancels_is_not_tried_again(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    flink.states = ["RUNNING", "CANCELED"]
    done = await Attempt(tmp_path, source_of(server)).ran()
    assert (done.code, done.settled) == (65, True)
    assert "the job was cancelled in Flink" in done.reason


async def test_job_that_flink_has_forgotten_fails_its_task(
    flink: FlinkRest, server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", 0.05)
    flink.states = ["RUNNING"]
    doing = asyncio.create_task(Attempt(tmp_path, source_of(server)).ran())
    await eventually(lambda: f"GET /jobs/{FIRST}" in asked(server))
    flink.jobs.clear()
    done = await doing
    assert (done.code, done.settled) == (1, False)
    assert "it no longer knows the job" in done.reason


# -- what cannot be used ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trace", "code", "said"),
    [
        (NO_CLASS, 65, "entry point class 'Nope' was not found in the jar file."),
        (MAIN_FAILED, 1, "not started: java.lang.IllegalArgumentException: no such table"),
        ("x.RestHandlerException: No jobs included in application.", 65, "never calls execute()"),
        ("something else", 1, "something else"),
    ],
)
async def test_program_that_is_refused_leaves_neither_jar_nor_job(
    flink: FlinkRest, server: HttpServer, tmp_path: Path, trace: str, code: int, said: str
) -> None:
    async def start(job: str) -> None:
        flink.jobs[job] = "RUNNING"  # the first job of the program, which fails behind it

    flink.refusal, flink.on_run = (400, trace), start
    done = await Attempt(tmp_path, source_of(server)).ran()
    assert (done.code, done.settled) == (code, True), done
    assert said in done.reason
    assert flink.jobs == {FIRST: "CANCELED"}
    assert flink.jars == {}


@pytest.mark.parametrize(
    ("said_by_it", "code", "said"),
    [
        (answer(401), 65, "refuses this user, password or token (HTTP 401)"),
        (answer(200, "<html>hello</html>"), 65, "what answers there is not Flink"),
        (answer(302, Location="http://127.0.0.1/x"), 65, "leads elsewhere (HTTP 302)"),
        (answer(503, "<html>"), 1, "HTTP 503"),
        (b"SSH-2.0-OpenSSH\r\n", 1, "farm"),
    ],
)
async def test_servers_that_are_no_use(
    tmp_path: Path, said_by_it: bytes, code: int, said: str
) -> None:
    async with HttpServer({"/config": says(said_by_it)}) as server:
        done = await Attempt(tmp_path, source_of(server)).ran()
    assert (done.code, done.settled) == (code, True)
    assert said in done.reason


async def test_password_is_not_sent_without_tls(
    flink: FlinkRest, server: HttpServer, tmp_path: Path
) -> None:
    done = await Attempt(tmp_path, source_of(server, user="u", password="sesame")).ran()
    assert done.code == 65
    assert "with the option tls=verify-full only" in done.reason
    assert asked(server) == []


async def test_token_is_sent_to_a_server_whose_certificate_is_verified(tmp_path: Path) -> None:
    identity = create_identity(tmp_path / "tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.cert, identity.key)
    flink = FlinkRest(tls=context)
    async with flink.serve() as server:
        options: dict[str, Option] = {"tls": "verify-full", "path": "/flows"}
        source = source_of(server, password="sesame", options=options)
        done = await Attempt(tmp_path / "a", source).ran()
        assert (done.code, flink.authorization) == (65, "")  # nobody knows who it is
        assert "its certificate is not trusted" in done.reason
        assert server.received == []
        options["ca_certificate"] = identity.ca.read_text()
        await Attempt(tmp_path / "b", source_of(server, password="sesame", options=options)).ran()
        assert flink.authorization == "Bearer sesame"
        assert asked(server)[0] == "GET /flows/config"
        user = source_of(server, user="etl", password="sesame", options=options)
        await Attempt(tmp_path / "c", user).ran()
        assert flink.authorization == f"Basic {basic('etl', 'sesame')}"


async def probed(server: HttpServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    said: list[str] = []
    source = source_of(server)
    request = WorkRequest(
        work="",
        task_type="",
        params={},
        parameters={},
        task_instance_id=0,
        attempt=1,
        tag="probe",
        data_sources={source.name: source},
    )
    work: Work[ProbeParams] = Work(request, ProbeParams(data_source=source.name), folder)
    monkeypatch.setattr(work, "log", said.append)
    await cluster.probe(work)
    return "\n".join(said)


async def test_probe_says_what_answers(
    flink: FlinkRest, server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flink.jobs = {FIRST: "RUNNING", OTHER: "FINISHED"}
    assert source_of(server).kind == "flink"
    assert await probed(server, tmp_path, monkeypatch) == "Flink 2.3.0, 1 jobs running"
    assert not any(one.startswith(("POST", "PATCH", "DELETE")) for one in asked(server))


async def test_probe_says_that_a_cluster_takes_no_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def config(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(200, '{"flink-version": "2.3.0"}'))

    async with HttpServer({"/config": config}) as server:
        with pytest.raises(WorkFailed, match=r"it takes no jars: set web\.submit\.enable"):
            await probed(server, tmp_path, monkeypatch)
