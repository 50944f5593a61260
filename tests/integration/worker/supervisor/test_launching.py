"""What an attempt gets, what it leaves, and what is said when it cannot start."""

import asyncio
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from shoal.worker.home.spool import Spool
from shoal.worker.processes.launcher import Launcher, LauncherUnavailable, LaunchFailed
from shoal.worker.processes.program import ExitRecord, ProcessOutcome
from shoal.worker.supervisor.causes import EndCause
from shoal.worker.supervisor.shims import MOST_IDLE
from tests.integration.worker.agent.kit import children
from tests.integration.worker.supervisor.attempt_site import Site, parent_of
from tests.support.waiting import eventually


async def run(launcher: Launcher, request: Any) -> ExitRecord:
    return await (await launcher.launch(request)).wait()


async def test_success_is_stored_before_it_is_reported(launcher: Launcher, site: Site) -> None:
    before = time.time()
    request = site.request("ok", "sh", "-c", "echo out; echo err >&2", context={"epoch": 7})
    record = await run(launcher, request)

    assert (record.outcome, record.exit_code, record.signal) == (ProcessOutcome.SUCCEEDED, 0, None)
    assert (record.timed_out, record.durable, record.context) == (False, True, {"epoch": 7})
    assert before <= record.started_at <= record.finished_at <= time.time()
    assert record.max_rss_kb > 0
    assert record.cpu_s > 0
    stored = json.loads((site.spool / "ok.json").read_text())
    assert ExitRecord.from_json(stored) == record
    assert sorted(site.log("ok").split()) == [b"err", b"out"]
    assert (site.logs / "ok.log").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in site.spool.iterdir()] == ["ok.json"]


async def test_an_exit_code_fails_the_attempt(launcher: Launcher, site: Site) -> None:
    record = await run(launcher, site.request("a", "sh", "-c", "exit 41"))
    assert (record.outcome, record.exit_code) == (ProcessOutcome.FAILED, 41)
    assert (record.reason, record.cause) == ("exit code 41", EndCause.EXITED)


async def test_death_by_a_signal_fails_the_attempt(launcher: Launcher, site: Site) -> None:
    record = await run(launcher, site.request("a", "sh", "-c", "kill -SEGV $$"))
    assert (record.outcome, record.exit_code, record.signal) == (
        ProcessOutcome.FAILED,
        None,
        signal.SIGSEGV,
    )
    assert record.cause is EndCause.SIGNALLED


async def test_ten_megabytes_in_a_burst_are_all_in_the_log(launcher: Launcher, site: Site) -> None:
    content = os.urandom(10 << 20)
    (site.work / "burst").write_bytes(content)
    await run(launcher, site.request("burst", "cat", "burst"))
    assert hashlib.sha256(site.log("burst")).digest() == hashlib.sha256(content).digest()


async def test_the_environment_is_exactly_the_given_one(launcher: Launcher, site: Site) -> None:
    env = {"PATH": os.environ["PATH"], "BIG": "x" * 100_000, "UNICODE": "äöü ✓ \udcff", "EMPTY": ""}
    await run(launcher, site.request("env", "env", "-0", env=env))
    expected = {os.fsencode(f"{name}={value}") for name, value in env.items()}
    assert set(site.log("env").rstrip(b"\0").split(b"\0")) == expected


async def test_arguments_arrive_byte_for_byte(launcher: Launcher, site: Site) -> None:
    arguments = ["", "two words", "-n", "ä✓", "\udcff", "$(touch evil)", "'\"\\", "line\nbreak"]
    await run(launcher, site.request("args", "printf", r"%s\0", *arguments))
    assert site.log("args") == b"".join(os.fsencode(text) + b"\0" for text in arguments)


async def test_signals_start_with_their_defaults(launcher: Launcher, site: Site) -> None:
    launched = await launcher.launch(site.request("a", "cat", "/proc/self/status"))
    await launched.wait()
    status = dict(line.split(":\t") for line in site.log("a").decode().splitlines())
    # 32 and 33 belong to the C library, which lets no program set them; some parents ignore them.
    reserved = 1 << 31 | 1 << 32
    assert int(status["SigIgn"], 16) & ~reserved == 0
    assert int(status["SigBlk"], 16) == 0
    assert int(status["Pid"]) == launched.pid


async def test_the_program_has_its_own_session_and_three_streams(
    launcher: Launcher, site: Site
) -> None:
    program = (
        "import os, json\n"
        "streams = [os.readlink(f'/proc/self/fd/{fd}') for fd in range(3)]\n"
        "fds = sorted(os.listdir('/proc/self/fd'))\n"
        "print(json.dumps([os.getpid(), os.getsid(0), os.getpgrp(), os.getcwd(), streams, fds]))"
    )
    await run(launcher, site.request("a", sys.executable, "-S", "-c", program))
    pid, session, group, cwd, streams, fds = json.loads(site.log("a"))
    assert pid == session == group
    assert cwd == str(site.work)
    assert streams == ["/dev/null", str(site.logs / "a.log"), str(site.logs / "a.log")]
    assert fds == ["0", "1", "2", "3"]  # 3 is the listing itself


async def test_standard_input_can_be_a_file(launcher: Launcher, site: Site) -> None:
    source = site.work / "input"
    source.write_bytes(b"\0text")
    await run(launcher, site.request("in", "cat", stdin_path=source))
    assert site.log("in") == b"\0text"


async def test_logs_are_appended_to(launcher: Launcher, site: Site) -> None:
    request = site.request("a", "echo", "more")
    request.log_path.parent.mkdir()
    request.log_path.write_text("header\n")
    await run(launcher, request)
    assert site.log("a") == b"header\nmore\n"


def not_executable(site: Site) -> dict[str, Any]:
    (site.work / "text").write_text("hello")
    return {"argv": ["./text"]}


def no_shebang(site: Site) -> dict[str, Any]:
    (site.work / "text").write_text("hello")
    (site.work / "text").chmod(0o700)
    return {"argv": ["./text"]}


def bad_shebang(site: Site) -> dict[str, Any]:
    (site.work / "text").write_text("#!/no/such/interpreter\n")
    (site.work / "text").chmod(0o700)
    return {"argv": ["./text"]}


def log_is_a_link(site: Site) -> dict[str, Any]:
    (site.work / "log").symlink_to(site.work / "elsewhere")
    return {"log_path": site.work / "log"}


def constant(**fields: Any) -> Any:
    return lambda site: fields


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        (
            constant(argv=["no-such-program"], env={"PATH": "/a:/b"}),
            "no such program in PATH=/a:/b",
        ),
        (constant(argv=["/no/such/program"]), "No such file or directory"),
        (not_executable, "is it executable"),
        (no_shebang, "#!/bin/sh"),
        (bad_shebang, "interpreter"),
        (constant(argv=["true", "x" * (200 << 10)]), "128 KiB"),
        (constant(cwd=Path("/no/such/dir")), "cannot enter the working directory /no/such/dir"),
        (constant(stdin_path=Path("/no/such")), "cannot read standard input from /no/such"),
        (
            constant(log_path=Path("/dev/null/x/a.log")),
            "cannot open the log file /dev/null/x/a.log",
        ),
        (log_is_a_link, "cannot open the log file"),
    ],
)
async def test_a_failed_start_says_why(
    launcher: Launcher, site: Site, case: Any, complaint: str
) -> None:
    fields: Mapping[str, Any] = {"argv": ["true"]} | case(site)
    request = site.request("a", *fields["argv"], **{k: v for k, v in fields.items() if k != "argv"})
    with pytest.raises(LaunchFailed) as error:
        await launcher.launch(request)
    assert complaint in error.value.why
    assert launcher.running == {}
    assert (await run(launcher, site.request("a", "true"))).outcome is ProcessOutcome.SUCCEEDED


async def test_a_result_that_cannot_be_stored_stays_what_it_is_and_says_so(
    launcher: Launcher, site: Site
) -> None:
    record = await run(launcher, site.request("a", "true", record_path=Path("/dev/null/a.json")))
    assert (record.outcome, record.exit_code, record.durable) == (
        ProcessOutcome.SUCCEEDED,
        0,
        False,
    )
    assert "cannot store the exit record" in record.reason
    assert "/dev/null" in record.reason
    assert (await run(launcher, site.request("b", "true"))).durable


async def test_a_full_log_disk_hurts_only_its_attempt(launcher: Launcher, site: Site) -> None:
    request = site.request("a", "sh", "-c", "echo lost", log_path=Path("/dev/full"))
    record = await run(launcher, request)
    assert record.outcome is ProcessOutcome.FAILED
    assert record.exit_code != 0
    assert "the log may be incomplete" in record.reason
    assert (await run(launcher, site.request("b", "true"))).outcome is ProcessOutcome.SUCCEEDED


async def test_two_hundred_attempts_at_once(launcher: Launcher, site: Site) -> None:
    # All wait for the same pipe, so they really run at the same time.
    os.mkfifo(site.work / "gate")
    gate = os.open(site.work / "gate", os.O_RDWR)
    ids = [f"many-{number}" for number in range(200)]
    script = "read line < gate; echo $1; exit $2"
    launched = await asyncio.gather(
        *(
            launcher.launch(site.request(each, "sh", "-c", script, "-", each, str(index % 7)))
            for index, each in enumerate(ids)
        )
    )
    assert set(launcher.running) == set(ids)
    os.write(gate, b"\n" * len(ids))
    records = await asyncio.gather(*(each.wait() for each in launched))
    os.close(gate)

    assert [record.exit_code for record in records] == [index % 7 for index in range(200)]
    assert [site.log(each) for each in ids] == [f"{each}\n".encode() for each in ids]
    assert {path.stem for path in site.spool.iterdir()} == set(ids)
    assert launcher.running == {}


async def test_an_id_is_running_only_once(launcher: Launcher, site: Site) -> None:
    launched = await launcher.launch(site.request("a", "sleep", "1000"))
    with pytest.raises(LaunchFailed, match="running already"):
        await launcher.launch(site.request("a", "true"))
    await launcher.kill("a", "done", 0)
    assert (await launched.wait()).outcome is ProcessOutcome.KILLED


async def test_every_exit_is_announced_even_if_the_listener_fails(site: Site) -> None:
    seen: list[str] = []

    def listen(record: ExitRecord) -> None:
        seen.append(record.id)
        raise RuntimeError("a mistake in the listener")

    with capture_logs() as logs:
        async with Launcher(on_exit=listen) as launcher:
            await run(launcher, site.request("a", "true"))
            await run(launcher, site.request("b", "false"))
    assert seen == ["a", "b"]
    assert [entry["event"] for entry in logs] == ["exit callback failed"] * 2


async def test_attempt_that_is_over_at_once_has_been_started(
    launcher: Launcher, site: Site
) -> None:
    launched = await launcher.launch(site.request("a", "sh", "-c", "echo $$"))
    record = await launched.wait()
    assert launched.pid == int(site.log("a"))
    assert launched.started_at == record.started_at


async def test_results_lie_in_journals_that_the_next_launcher_goes_on_with(site: Site) -> None:
    spool = Spool(site.spool)
    async with Launcher(on_stored=spool.note) as launcher:
        await run(launcher, site.request("a", "true"))
        pid = launcher.pid
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: launcher.pid != pid)
        record = await run(launcher, site.request("b", "false"))
    assert [path.suffix for path in site.spool.iterdir()] == [".lines"]
    assert [entry.id for entry in Spool(site.spool).pending()] == ["a", "b"]
    assert ExitRecord.from_json(spool.get("b")) == record
    for number in "ab":
        spool.remove(number)
    assert Spool(site.spool).pending() == []


async def test_a_closed_launcher_takes_no_attempts(site: Site) -> None:
    async with Launcher() as launcher:
        pass
    with pytest.raises(LauncherUnavailable):
        await launcher.launch(site.request("a", "true"))


async def test_no_descriptor_is_left_in_the_launcher(launcher: Launcher, site: Site) -> None:
    fds = f"/proc/{launcher.pid}/fd"
    per_shim, unused = 2, len(os.listdir(fds))
    before = unused + per_shim * MOST_IDLE
    for masks in ([], ["a secret"]):
        requests = [site.request(f"a{n}", "true", masks=masks) for n in range(2 * MOST_IDLE)]
        await asyncio.gather(*(run(launcher, request) for request in requests))
        with pytest.raises(LaunchFailed):
            await launcher.launch(site.request("b", "no-such-program", masks=masks))
        await eventually(lambda: len(os.listdir(fds)) <= before)


async def test_attempt_with_a_filter_ends_whatever_becomes_of_the_filter(
    launcher: Launcher, site: Site
) -> None:
    """It is killed: the attempt cannot write any more, but it runs to its end."""
    script = "trap '' PIPE; echo ready secret; until [ -e go ]; do sleep 0.02; done; echo x; exit 3"
    request = site.request("a", "/bin/sh", "-c", script, masks=["secret"])
    launched = await launcher.launch(request)
    await eventually(lambda: site.log("a") == b"ready ***\n")
    (filter_pid,) = {child.pid for child in children(launcher.pid)} - {parent_of(launched.pid)}
    os.kill(filter_pid, signal.SIGKILL)
    (site.work / "go").touch()
    record = await launched.wait()
    assert (record.outcome, record.exit_code) == (ProcessOutcome.FAILED, 3)
    assert "its log may be incomplete" in record.reason
