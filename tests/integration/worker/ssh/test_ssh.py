"""SSH tasks on a real OpenSSH server, in processes of their own."""

import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.ssh.kind import Ssh
from tests.integration.drivers.kit import Proxied, wait_until
from tests.integration.worker.sql.kit import TAG, Ended, Process, ran
from tests.support.servers.sshd import SSHD, Served, served


@dataclass(frozen=True)
class Family:
    """A script whose processes can be told from all others by how long they sleep."""

    seconds: int

    @property
    def script(self) -> str:
        """A shell with a child, and one that leaves its session and ignores SIGTERM."""
        return (
            f"setsid sh -c 'trap \"\" TERM; sleep {self.seconds} & wait; wait' >/dev/null 2>&1 &\n"
            f"sleep {self.seconds} &\n"
            "echo started\n"
            "wait\n"
        )

    def alive(self) -> list[str]:
        command = ["pgrep", "-f", f"sleep {self.seconds}"]
        return subprocess.run(command, capture_output=True, text=True).stdout.split()

    def is_whole(self) -> bool:
        return len(self.alive()) == 3


@pytest.fixture
def family() -> Iterator[Family]:
    one = Family(10_000_000 + secrets.randbelow(10_000_000))
    yield one
    for pid in one.alive():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if not SSHD.exists():
        pytest.fail("there is no /usr/sbin/sshd: run tests/provision.sh")
    with served(tmp_path_factory.mktemp("sshd")) as one:
        yield one


def done(source: DataSource, folder: Path, script: str | None, **more: Any) -> Ended:
    params = {"script": script, **more.pop("params", {})}
    return ran(source, params, folder, kind=Ssh, **more)


def left() -> list[Path]:
    return list(Path("/tmp").glob(f"{TAG}.*"))


def test_output_exit_code_and_outputs(server: Served, tmp_path: Path) -> None:
    script = (
        'echo "on $SHOAL_PARAM_WHAT, ${what}"; echo to stderr >&2\n'
        'printf "no line end\\n\\nétoile"\n'
        "cat\n"  # reads nothing: the script is not its own input
        'echo \'{"a": "one"}\' >> "$SHOAL_OUTPUT"\n'
        'test "$SHOAL_SECRET_PW" = "it\'s \\"x\\"" || exit 9\n'
    )
    parameters = {"what": "a 'b'; $(touch /tmp/pwned) \\ \"c\""}
    variables = {"what": parameters["what"], "SHOAL_PARAM_WHAT": parameters["what"]}
    ended = done(
        server.source,
        tmp_path / "a",
        script,
        parameters=parameters,
        secrets={"PW": 'it\'s "x"'},
        env=variables,
    )
    assert ended.code == 0, ended.log
    assert ended.settled
    assert ended.outputs == {"a": "one"}
    *_, said, error, first, blank, last = ended.log.splitlines()
    assert said == f"on {parameters['what']}, {parameters['what']}"
    assert (error, first, blank, last) == ("to stderr", "no line end", "", "étoile")
    assert not left()


def test_folder_that_a_parameter_names_stays(server: Served, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "kept").touch()
    named = dict.fromkeys(("d", "code", "t", "s", "n", "p"), str(data))
    ended = done(server.source, tmp_path / "a", 'ls "$d"; exit 7', parameters=named, env=named)
    assert (ended.code, ended.log.splitlines()[-1]) == (7, "kept"), ended.log
    assert (data / "kept").exists()
    assert not left()


def test_exit_code_of_the_script(server: Served, tmp_path: Path) -> None:
    ended = done(server.source, tmp_path / "a", "exit 7")
    assert (ended.code, ended.reason) == (7, "")
    ended = done(
        server.source, tmp_path / "b", "[[ 1 == 1 ]] && kill -9 $$", params={"interpreter": "bash"}
    )
    assert ended.code == 137


def test_program_from_a_resource_gets_parameters_as_variables(
    server: Served, tmp_path: Path
) -> None:
    text = "\ufeff[[ $what == 'a b' ]] || exit 9\necho \"not rendered: \\${what} \\$[yyyy]\"\n"
    ended = done(
        server.source,
        tmp_path / "a",
        None,
        params={"file": "etl/far away.sh@3", "interpreter": "bash"},
        parameters={"what": "a b"},
        env={"what": "a b"},
        files={"etl/far away.sh": text.encode()},
    )
    assert ended.code == 0, ended.log
    assert ended.log.splitlines()[-1] == "not rendered: ${what} $[yyyy]"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\xff\xfe", "is not UTF-8 text"),
        (b" \n", "is empty: there is nothing to run"),
        (b"echo a\0b", "holds the NUL character"),
    ],
)
def test_resource_that_is_no_program_fails_before_anything_runs(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    nobody = DataSource("farm", "ssh", host="127.0.0.1", port=1, user="etl")
    params = {"file": "run.sh"}
    ended = done(nobody, tmp_path / "a", None, params=params, files={"run.sh": content})
    assert (ended.code, ended.settled) == (65, True)
    assert ended.reason.startswith(f"run.sh {problem}")


def test_nothing_is_left_in_the_background(server: Served, family: Family, tmp_path: Path) -> None:
    ended = done(
        server.source, tmp_path / "a", f"sleep {family.seconds} >/dev/null 2>&1 &\necho $!"
    )
    assert ended.code == 0, ended.log
    assert not family.alive()


def test_much_output(server: Served, tmp_path: Path) -> None:
    script = "head -c 300000 /dev/zero | tr '\\0' x; echo; seq 200000"
    ended = done(server.source, tmp_path / "a", script)
    lines = ended.log.splitlines()
    assert sum(line.count("x") for line in lines) == 300_000
    assert lines[-200_000:] == [str(number) for number in range(1, 200_001)]


def test_killed_with_all_that_it_has_started(
    server: Served, family: Family, tmp_path: Path
) -> None:
    with Process(server.source, {"script": family.script}, tmp_path / "a", kind=Ssh) as process:
        process.until("started")
        wait_until(family.is_whole)
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True)
    assert not family.alive()
    assert not left()


def test_what_a_dead_process_has_left_is_settled(
    server: Served, family: Family, tmp_path: Path
) -> None:
    with Process(server.source, {"script": family.script}, tmp_path / "a", kind=Ssh) as process:
        process.until("started")
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
    wait_until(family.is_whole)
    ended = done(server.source, tmp_path / "b", family.script, settle=True)
    assert (ended.code, ended.settled) == (0, True), ended.log
    assert not family.alive()


def test_no_two_attempts_run_at_once(server: Served, family: Family, tmp_path: Path) -> None:
    with Process(server.source, {"script": family.script}, tmp_path / "a", kind=Ssh) as process:
        process.until("started")
        process.signal(signal.SIGKILL)
        process.ended()
    wait_until(family.is_whole)
    ended = done(
        server.source,
        tmp_path / "b",
        f"pgrep -f '^sleep {family.seconds}$' || echo alone",
        attempt=2,
    )
    assert "alone" in ended.log


def test_lost_connection_ends_the_script(server: Served, family: Family, tmp_path: Path) -> None:
    with (
        Proxied(server.source) as way,
        Process(way.source, {"script": family.script}, tmp_path / "a", kind=Ssh) as process,
    ):
        process.until("started")
        way.cut()
        ended = process.ended()
    assert (ended.code, ended.settled) == (1, False)  # the host is out of reach for all
    assert "the connection was lost" in ended.reason or "its connection did" in ended.reason
    settled = done(server.source, tmp_path / "b", family.script, settle=True)
    assert settled.settled
    assert not family.alive()


@pytest.mark.parametrize(
    ("changes", "options", "code", "said"),
    [
        ({}, {"host_key": None}, 65, "The host shows ssh-ed25519 "),
        ({}, {"host_key": "other"}, 65, "the host has another key than `host_key` says"),
        ({"password": "other"}, {}, 65, "the host refuses this user or key"),
        ({"password": "a password"}, {}, 65, "the host refuses this user or password"),
        ({"password": "-----BEGIN X-----"}, {}, 65, "the private key cannot be used"),
        ({"user": "nobody-here"}, {}, 65, "the host refuses this user"),
        ({"port": 1}, {}, 1, "no server listens there"),
        ({"host": "nowhere.invalid"}, {}, 1, "cannot sign in"),
    ],
)
def test_hosts_that_cannot_be_used(
    server: Served,
    tmp_path: Path,
    changes: dict[str, Any],
    options: dict[str, Any],
    code: int,
    said: str,
) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    if changes.get("password") == "other":
        changes = {"password": other.export_private_key().decode()}
    if options.get("host_key") == "other":
        options = {"host_key": other.export_public_key().decode().strip()}
    given = {**server.source.options, **options}
    source = replace(server.source, **changes, options={k: v for k, v in given.items() if v})
    ended = done(source, tmp_path / "a", "echo never")
    assert ended.code == code, ended.log
    assert said in ended.reason
    assert ended.settled
    assert "never" not in ended.log
    assert "Traceback" not in ended.log
