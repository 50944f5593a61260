"""``shoal test``: one task, here, without a cluster."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shoal.client.trial.execution import try_task
from shoal.client.trial.inputs import Given, TaskInputs
from shoal.core.runs.run import WorkflowPlan
from tests.support.waiting import DEADLINE_S, eventually
from tests.unit.core.decide.driving import spec

DEFINITION = """\
name: daily
project: flights
timezone: Europe/Berlin
parameters:
  city: Paris
tasks:
  - name: hello
    type: SHELL
    parameters: {day: "$[yyyy-MM-dd-1]", where: "${city}/${key}"}
    params:
      script: |
        echo "$city on $day at $where"
        echo "secret $SHOAL_SECRET_token"
        echo "size=3" >> "$SHOAL_OUTPUT"
        exit ${code:-0}
  - name: choose
    type: SWITCH
    depends_on: hello
    params: {cases: [{when: "1 == 1", then: slow}]}
  - name: slow
    type: SHELL
    depends_on: choose
    timeout: 1m
    params: {script: "echo $$ > '%s'; sleep 1000"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "wf.yaml").write_text(DEFINITION % (tmp_path / "pid"))
    return tmp_path


def shoal(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``shoal test`` there."""
    return subprocess.run(
        [sys.executable, "-m", "shoal.client.cli", "test", *arguments, "-f", "wf.yaml"],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_task_runs_and_every_value_is_shown(folder: Path) -> None:
    date = ("--date", "2026-11-23")
    done = shoal(folder, "hello", *date, "-p", "key=x", SHOAL_SECRET_token="sesame")
    assert (done.returncode, done.stdout) == (0, "Paris on 2026-11-22 at Paris/x\nsecret ***\n")
    assert done.stderr.splitlines() == [
        "flights/daily/hello  SHELL  for 2026-11-23T00:00:00+01:00 (Europe/Berlin)",
        "parameters",
        "  city = Paris",
        "  day = 2026-11-22",
        "  key = x",
        "  where = Paris/x",
        "params",
        "  script = ",
        '      echo "$city on $day at $where"',
        '      echo "secret $SHOAL_SECRET_token"',
        '      echo "size=3" >> "$SHOAL_OUTPUT"',
        "      exit ${code:-0}",
        "output size = 3",
        "SUCCEEDED",
    ]


def test_failure_is_the_exit_status_and_in_the_json(folder: Path) -> None:
    given = ("-p", "code=7", "-p", "city=Rome", "--json")
    done = shoal(folder, "daily/hello", *given, SHOAL_SECRET_token="sesame")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["parameters"]["city"] == "Rome"
    said = {"exit_code": 7, "reason": "exit code 7", "outputs": {}}
    assert answer["result"] == {**said, "again_s": None, "files": []}
    assert "sesame" not in done.stdout + done.stderr


def test_dry_run_only_shows(folder: Path) -> None:
    done = shoal(folder, "hello", "--dry-run", SHOAL_SECRET_token="sesame")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("nothing fills ${key}; give it with -p key=…\nnot run\n")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("hello",), 1, "the task uses the secret token; a trial takes it from the environment"),
        (("helo",), 3, "wf.yaml has no task 'helo'; did you mean 'hello'?"),
        (("dayly/hello",), 3, "wf.yaml has no workflow 'dayly'; did you mean 'daily'?"),
        (("choose",), 1, "choose is of the type SWITCH, which masters run"),
        (("hello", "--date", "soon"), 2, "'soon' is not a time"),
        (("hello", "-p", "city"), 2, "'city' is not KEY=VALUE"),
    ],
)
def test_what_is_wrong_is_said(
    folder: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    done = shoal(folder, *arguments)
    assert done.returncode == status, done.stderr
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_wrong_definition_is_shown_with_its_line(folder: Path) -> None:
    (folder / "wf.yaml").write_text("name: daily\ntasks: [{name: a, type: SHEL}]\n")
    done = shoal(folder, "a")
    assert done.returncode == 2
    assert "wf.yaml:2: tasks[0].type: unknown task type 'SHEL'" in done.stderr
    assert "nothing was run" in done.stderr


def wait_for_pid(file: Path) -> None:
    """Wait until a process has written its number, without a step of the event loop."""
    deadline = time.monotonic() + DEADLINE_S
    while not file.exists() or not file.read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def children() -> str:
    """Return the processes that this thread has started and that run."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text()


def test_interrupt_ends_the_task(folder: Path) -> None:
    command = [sys.executable, "-m", "shoal.client.cli", "test", "slow", "-f", "wf.yaml"]
    running = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE)
    try:
        wait_for_pid(folder / "pid")
        running.send_signal(signal.SIGINT)
        assert running.wait(DEADLINE_S) == 130
    finally:
        running.kill()
        running.communicate()
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)


async def test_cancelled_while_its_process_starts_it_ends_what_the_process_has_started(
    tmp_path: Path,
) -> None:
    script = f"sleep 1000 & echo $! > {tmp_path}/pid; wait"
    plan = WorkflowPlan.of(spec({"a": {"params": {"script": script}}}))
    given = Given({}, {"PATH": "/usr/bin:/bin"})
    inputs = TaskInputs(plan, "a", datetime(2026, 11, 21, 6, tzinfo=UTC), given)
    before = children()
    trial = asyncio.create_task(try_task(inputs, lambda part: None))
    while children() == before:
        await asyncio.sleep(0)  # one step of the loop: the start goes on in later ones
    pid = tmp_path / "pid"
    wait_for_pid(pid)  # the loop stands still meanwhile
    trial.cancel()
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(asyncio.CancelledError):
            await trial
    await eventually(lambda: not Path(f"/proc/{pid.read_text().strip()}").exists())


def test_settings_of_workers_count_for_http_tasks(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    definition = {
        "name": "ask",
        "tasks": [{"name": "ask", "type": "HTTP", "params": {"url": f"http://127.0.0.1:{port}"}}],
    }
    (folder / "wf.yaml").write_text(json.dumps(definition))
    refused = shoal(folder, "ask")
    assert "may not be reached from this machine" in refused.stdout
    allowed = shoal(folder, "ask", SHOAL_WORKER_HTTP_ALLOW="127.0.0.1")
    assert "cannot connect to 127.0.0.1" in allowed.stdout
