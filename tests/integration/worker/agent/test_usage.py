"""What a worker reports of an attempt besides its outcome: what it used, and its error line."""

import signal
from pathlib import Path

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    WorkerProcess,
    kill,
    log_file,
    the_worker,
    until,
)
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

# Both processes of the attempt work and one is large, so that neither figure is of one alone.
BUSY = """
python3 -c 'x = bytearray(80 << 20); x[::4096] = b"x" * len(x[::4096]); sum(range(10**7))' &
python3 -c 'sum(range(10**7))'
wait
"""


async def report_of(master: FakeMaster, kind: str, params: dict[str, object]) -> pb.Report:
    number = await master.submit(kind, params)
    report = (await master.table.ended(number, timeout_s=DEADLINE_S)).report
    assert report is not None
    return report


async def test_processor_time_and_memory_are_those_of_all_processes(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    report = await report_of(master, "SHELL", {"script": BUSY})
    one = await report_of(master, "PYTHON", {"script": "sum(range(10**7))"})
    idle = await report_of(master, "SHELL", {"script": "true"})
    assert report.kind == pb.SUCCEEDED
    assert 80 << 10 < report.max_rss_kb < 300 << 10
    assert report.cpu_s > 1.3 * one.cpu_s > 1.3 * idle.cpu_s > 0
    assert 0 < idle.max_rss_kb < 80 << 10
    assert report.error_line == ""


async def test_failure_is_reported_with_the_line_that_says_why(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    script = "import atexit\natexit.register(print, 'closing')\nprint('ERROR? no')\n{}['day']"
    failed = await report_of(master, "PYTHON", {"script": script})
    assert (failed.kind, failed.error_line) == (pb.FAILED, "KeyError: 'day'")
    assert failed.max_rss_kb > 0
    shell = await report_of(master, "SHELL", {"script": "echo a; ls /no/such/file; exit 3"})
    assert "/no/such/file" in shell.error_line
    silent = await report_of(master, "SHELL", {"script": "exit 3"})
    assert (silent.kind, silent.error_line) == (pb.FAILED, "")


async def test_what_ran_into_its_timeout_has_an_error_line(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    script = "echo 'FATAL: no answer'; sleep 100"
    number = await master.submit("SHELL", {"script": script}, timeout_s=5.0)
    report = (await master.table.ended(number, timeout_s=DEADLINE_S)).report
    assert report is not None
    assert (report.kind, report.error_line) == (pb.FAILED, "FATAL: no answer")


async def test_what_was_killed_is_reported_with_its_line_for_masters_that_call_it_lost(
    master: FakeMaster, worker: InProcessWorker, channels: Channels, cluster: ClusterSettings
) -> None:
    script = "echo 'ERROR: in the middle'; sleep 100"
    number = await master.submit("SHELL", {"script": script})
    await master.table.wait(number, "RUNNING", timeout_s=DEADLINE_S)
    await eventually(lambda: log_file(cluster.data, number).read_text())
    assert await kill(channels, await the_worker(master.session), number) == [number]
    report = (await master.table.ended(number, timeout_s=DEADLINE_S)).report
    assert report is not None
    assert (report.kind, report.error_line) == (pb.KILLED, "ERROR: in the middle")


async def test_secret_is_in_no_error_line(master: FakeMaster, worker: InProcessWorker) -> None:
    script = 'echo "ERROR: $SHOAL_SECRET_db refused"; exit 1'
    number = await master.submit("SHELL", {"script": script}, secrets={"db": "hush-hush-1"})
    report = (await master.table.ended(number, timeout_s=DEADLINE_S)).report
    assert report is not None
    assert report.error_line == "ERROR: *** refused"


async def test_task_that_takes_its_log_away_fails_as_it_would_have(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    script = 'log=$(readlink /proc/$$/fd/1); rm "$log"; mkfifo "$log"; exit 4'
    report = await report_of(master, "SHELL", {"script": script})
    assert (report.kind, report.exit_code, report.error_line) == (pb.FAILED, 4, "")


async def test_program_of_the_worker_itself_says_why_it_failed(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    report = await report_of(master, "HTTP", {"url": "http://127.0.0.1:9/x"})
    assert report.kind == pb.FAILED
    assert report.error_line
    assert report.reason.startswith(report.error_line)


async def test_result_of_an_earlier_life_has_its_error_line(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    script = f"{until(go)}; echo 'ERROR: no disk'; exit 3"
    with WorkerProcess(cluster) as worker:
        await the_worker(master.session)
        number = await master.submit("SHELL", {"script": script})
        await master.table.wait(number, "RUNNING", timeout_s=DEADLINE_S)
        await master.disown(number % 4)
        go.touch()
        await eventually(lambda: "task ended" in worker.log)
        worker.signal(signal.SIGKILL)
        await worker.wait()
    master.owned.add(number % 4)
    with WorkerProcess(cluster):
        report = (await master.table.ended(number, timeout_s=DEADLINE_S)).report
    assert report is not None
    assert (report.kind, report.error_line) == (pb.FAILED, "ERROR: no disk")
    assert report.cpu_s > 0
