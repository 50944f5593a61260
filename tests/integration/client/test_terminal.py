"""The ``shoal`` program as a process of its own: terminals, signals, pipes, start-up."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from shoal.client.local.cluster import LocalCluster
from tests.integration.client.conftest import HELLO, Shoal, workflow
from tests.support.parts import PARTS
from tests.support.waiting import DEADLINE_S

SHOAL = [sys.executable, "-m", "shoal.client.cli"]


def environment(cluster: LocalCluster, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SHOAL_", "COLUMNS", "LINES"))}
    return {**kept, "SHOAL_DATA": str(cluster.data), "TERM": "xterm-256color", **more}


@dataclass
class Terminal:
    """A program on a terminal of 90 by 24 characters."""

    process: subprocess.Popen[bytes]
    master: int
    seen: str = ""

    def read_until(self, pattern: str, timeout_s: float = DEADLINE_S) -> str:
        deadline = time.monotonic() + timeout_s
        while not re.search(pattern, self.seen):
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"{pattern!r} did not come: {self.seen!r}"
            if select.select([self.master], [], [], left_s)[0] and not self._read():
                break
        assert re.search(pattern, self.seen), self.seen
        return self.seen

    def end(self, timeout_s: float = DEADLINE_S) -> int:
        while self._read():
            pass
        return self.process.wait(timeout_s)

    def _read(self) -> bool:
        try:
            part = os.read(self.master, 65536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self.seen += part.decode("utf-8", "replace")
        return bool(part)


@pytest.fixture
def terminal(cluster: LocalCluster, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Start programs on terminals of their own; they are ended afterwards."""
    started: list[Terminal] = []

    def start(*arguments: str, **variables: str) -> Terminal:
        master, slave = pty.openpty()
        size = (24).to_bytes(2, "little") + (90).to_bytes(2, "little") + bytes(4)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        process = subprocess.Popen(
            [*SHOAL, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=tmp_path,
            env=environment(cluster, **variables),
            start_new_session=True,
        )
        os.close(slave)
        found = Terminal(process, master)
        started.append(found)
        return found

    yield start
    for found in started:
        if found.process.poll() is None:
            found.process.kill()
            found.process.wait()
        os.close(found.master)


def test_a_terminal_shows_the_run_live_and_ctrl_c_leaves_it_running(
    here: Shoal, terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    workflow("patient", f"while [ ! -e '{tmp_path}/go' ]; do sleep 0.05; done")
    here("apply", "patient.yaml")
    screen = terminal("run", "patient", "--wait")
    seen = screen.read_until(r"only.*RUNNING")
    assert "\x1b[" in seen
    number = re.search(r"as instance (\d+)", seen)
    assert number is not None
    screen.process.send_signal(signal.SIGINT)
    assert screen.end() == 130
    assert f"instance {number[1]} runs on; `shoal stop {number[1]}` ends it" in screen.seen
    assert "Traceback" not in screen.seen
    assert screen.seen.count("\x1b[?25l") == screen.seen.count("\x1b[?25h")  # the cursor is back

    follower = terminal("logs", f"{number[1]}:only", "--follow")
    Path(tmp_path, "go").touch()
    assert follower.end() == 0
    assert "only SUCCEEDED" in follower.seen


def test_a_terminal_is_asked_before_something_is_published(
    here: Shoal, terminal: Callable[..., Terminal]
) -> None:
    workflow("asked", "true")
    for answer, status in ((b"n\n", 1), (b"y\n", 0)):
        screen = terminal("apply", "asked.yaml")
        screen.read_until(r"Publish 1 workflow\?")
        os.write(screen.master, answer)
        assert screen.end() == status
    assert here("workflow", "asked", "--json").json["version"] == 1
    workflow("asked", "false")
    assert terminal("apply", "asked.yaml", "--yes").end() == 0


def test_passwords_are_asked_for_and_not_shown_and_a_token_is_alone_on_standard_output(
    here: Shoal, cluster: LocalCluster, terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    first, own = here("user", "add", "typist").out.strip(), "what nobody sees"
    at = {"XDG_CONFIG_HOME": str(tmp_path), "SHOAL_URL": cluster.url}
    screen = terminal("login", **at)
    for question, answer in (
        (r"Name \[\S+\]: ", "typist"),
        (r"Password of typist at \S+: ", first),
        (r"New password: ", own),
        (r"Repeat for confirmation: ", own),
    ):
        screen.read_until(question)
        os.write(screen.master, f"{answer}\n".encode())
    assert screen.end() == 0
    assert f"signed in to {cluster.url} as typist" in screen.seen
    assert first not in screen.seen
    assert own not in screen.seen
    token = subprocess.run(
        [*SHOAL, "token", "add", "typed"],
        input=f"{own}\n",
        capture_output=True,
        text=True,
        check=True,
        env=environment(cluster, **at),
    )
    assert re.fullmatch(r"shoal_pat_\S+\n", token.stdout)


def test_no_color_is_respected_and_nothing_is_wider_than_the_terminal(
    here: Shoal, terminal: Callable[..., Terminal]
) -> None:
    here("apply", str(HELLO))
    for arguments in (["status"], ["workflow", "hello"], ["instances"], ["task-types"]):
        screen = terminal(*arguments, NO_COLOR="1")
        assert screen.end() == 0
        assert not re.search(r"\x1b\[3\d", screen.seen)
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.seen)
        # A failed check is one line, which the terminal wraps: other tests may have caused one.
        longest = max((one for one in plain.splitlines() if not one.startswith("✗")), key=len)
        assert len(longest) <= 90, longest


def test_a_reader_that_goes_away_is_no_accident(here: Shoal, cluster: LocalCluster) -> None:
    workflow("chatty", "seq 1 200000")
    here("apply", "chatty.yaml")
    number = here("run", "chatty", "--wait", "--json").json["id"]
    with subprocess.Popen(
        [*SHOAL, "logs", f"{number}:only"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(cluster),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"1\n"
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_terminal_that_knows_ascii_only_gets_along(cluster: LocalCluster) -> None:
    done = subprocess.run(
        [*SHOAL, "status"],
        env=environment(cluster, PYTHONIOENCODING="ascii"),
        capture_output=True,
        timeout=DEADLINE_S,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"? ok  Shoal" in done.stdout


def test_a_question_to_the_api_loads_little(cluster: LocalCluster) -> None:
    """What is loaded is what a short command costs. (Typer itself has to have pydantic.)"""
    code = (
        "import sys; from shoal.client.cli import run; status = run(['instances']);"
        "print(status, *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(cluster),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    status, *loaded = done.stdout.splitlines()[-1].split()
    assert status == "0", done.stderr
    servers = {"sqlalchemy", "grpc", "fastapi", "starlette", "uvicorn", "kazoo", "pyspark"}
    others = {"yaml", "structlog", "click", "pygments", "markdown_it", "numpy", "pandas"}
    ours = {
        "shoal.core.definition.model",
        "shoal.runtime.settings",
        "shoal.client.sdk.workflow",
        "shoal.runtime.documents.source",
        "shoal.client.rest.operations.generated.types",
    }
    parts = {f"shoal.{part}" for part in PARTS - {"client", "core", "runtime"}}
    assert not (servers | others | ours | parts).intersection(loaded)
    calls = "shoal.client.rest.operations.generated.calls."
    assert [name for name in loaded if name.startswith(calls)] == [f"{calls}instances"]
    assert len(loaded) < 500


def test_help_is_complete_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; from shoal.client.cli import run; status = run(['--help']);"
        "heavy = {'httpx', 'yaml', 'pydantic', 'grpc', 'sqlalchemy', 'fastapi', 'kazoo',"
        "'shoal.client.rest.client', 'shoal.client.sdk.workflow'};"
        "print(sorted(heavy & set(sys.modules)), status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.stdout.splitlines()[-1] == "[] 0"
    for command in ("apply", "run", "instances", "instance", "logs", "pause", "resume", "stop",
                    "rerun", "recover", "workflows", "workflow", "status", "task-types",
                    "up", "down", "doctor"):  # fmt: skip
        assert re.search(rf"^│ {command} ", done.stdout, re.MULTILINE), command
    assert "130 interrupted" in done.stdout
