"""Parameters and scripts of SSH tasks cannot reach what starts them and waits for them."""

import asyncio
import re
import shutil
import subprocess
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.ssh import remote
from shoal.worker.types.ssh.host import Host, signed_in
from tests.integration.worker.sql.kit import TAG
from tests.support.programs import program
from tests.support.servers.sshd import served

T = TypeVar("T")

# Those that no shell lists, or that an earlier program here has used.
_MORE_NAMES = (
    *("d", "code", "_", "PATH", "IFS", "HOME", "TMPDIR", "PWD", "OLDPWD", "ENV", "BASH_ENV"),
    *("LD_PRELOAD", "LD_AUDIT", "PS4", "CDPATH", "POSIXLY_CORRECT", "TMOUT", "COLUMNS", "LINES"),
    *("LC_ALL", "LANG", "HISTSIZE", "BASH_XTRACEFD", "BASH_COMPAT", "GLOBIGNORE", "EXECIGNORE"),
    *("OPTIND", "OPTARG", "OPTERR", "RANDOM", "SRANDOM", "SECONDS", "LINENO", "HISTCMD", "PPID"),
)
_SCRIPT = 'echo "said $SHOAL_PARAM"\necho \'{}\' > "$SHOAL_OUTPUT"\nexit 7'


@dataclass(frozen=True)
class Said:
    """How a script ended. ``code``: the reason instead if nobody knows it."""

    code: int | str
    outputs: bytes
    log: str

    @property
    def last_line(self) -> str:
        return self.log.rstrip("\n").rpartition("\n")[-1]


@pytest.fixture(params=["dash", "bash", "busybox"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DataSource]:
    """A host whose ``sh`` is that shell."""
    shell = program(request.param)
    programs, files = tmp_path / "programs", tmp_path / "sshd"
    programs.mkdir()
    files.mkdir()
    (programs / "sh").symlink_to(shell)
    with served(files, f"SetEnv PATH={programs}:/usr/local/bin:/usr/bin:/bin\n") as one:
        yield one.source


def names_of_programs() -> set[str]:
    """The variables of the programs that run at the host, as their texts have them."""
    empty = script("")
    text = " ".join((empty.program.decode(), empty.command("tag"), remote.end("tag")))
    found = re.findall(r"\b([A-Za-z_]\w*)=|\$\{?([A-Za-z_]\w*)", text)
    return {name for pair in found for name in pair if name and name[:6] != "SHOAL_"}


def names_of_shells() -> set[str]:
    commands = (["bash", "-c", "compgen -v"], ["sh", "-c", "set"])
    listed = [subprocess.run(one, capture_output=True, text=True).stdout for one in commands]
    found = re.findall(r"^([A-Za-z_]\w*)(?:=|$)", "\n".join(listed), re.MULTILINE)
    return {name for name in found if name[:6] != "SHOAL_"}


def at(source: DataSource, work: Callable[[Host], Coroutine[Any, Any, T]]) -> T:
    async def signed() -> T:
        async with signed_in(source) as host:
            return await work(host)

    return asyncio.run(signed())


def script(
    text: str, variables: Mapping[str, str] | None = None, interpreter: str = "sh"
) -> remote.RemoteScript:
    return remote.RemoteScript(text, interpreter, variables or {})


async def said(host: Host, given: remote.RemoteScript) -> Said:
    """Run a script as an attempt does, without ending what it has left."""
    log = bytearray()
    try:
        code, outputs = await host.run(TAG, given, log.extend)
    except WorkFailed as failed:
        return Said(str(failed), b"", log.decode())
    return Said(code, outputs, log.decode())


async def ended(host: Host, given: remote.RemoteScript) -> Said:
    """Run a script and end what it has left."""
    one = await said(host, given)
    await host.end(TAG)
    return one


def left() -> list[Path]:
    return list(Path("/tmp").glob(f"{TAG}.*"))


def test_no_name_of_a_parameter_reaches_beyond_the_script(
    source: DataSource, tmp_path: Path
) -> None:
    data, ran = tmp_path / "data", tmp_path / "ran"
    data.mkdir()
    ran.mkdir()
    (data / "kept").touch()
    alone = sorted(names_of_programs() | set(_MORE_NAMES[:4]))
    others = sorted(names_of_shells() | set(_MORE_NAMES) - set(alone))
    assert {"TMPDIR", "d", "t"} < set(alone)
    assert {"UID", "BASHOPTS", "OPTIND"} < set(others)
    groups = [[name] for name in alone] + [others[n : n + 8] for n in range(0, len(others), 8)]
    attempts = [("sh", group) for group in groups] + [("bash", [*alone, *others])]

    async def each(host: Host) -> None:
        for interpreter, names in attempts:
            # Nothing removes the folder. As arithmetic, the other value is a program.
            for value in (str(data), f"a[$(: > {ran}/{names[0]})]"):
                given = {**dict.fromkeys(names, value), "SHOAL_PARAM": value}
                one = await said(host, script(_SCRIPT, given, interpreter))
                assert (one.code, one.outputs) == (7, b"{}\n"), f"{names}: {one}"
                assert one.last_line == f"said {value}", f"{names}: {one}"
                assert (data / "kept").exists(), f"of {names} one named a folder that is gone"
                assert not left(), names

    at(source, each)
    assert not list(ran.iterdir())


def test_variable_that_the_shell_keeps_is_named_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "sh").symlink_to(shutil.which("bash") or "")
    files = tmp_path / "sshd"
    files.mkdir()
    with served(files, f"SetEnv PATH={tmp_path}:/usr/bin:/bin\n") as one:
        given = {"UID": "x", "SHOAL_PARAM_UID": "x", "uid": "y"}
        told = at(one.source, lambda host: said(host, script("echo $SHOAL_PARAM_UID $uid", given)))
    first, second = told.log.splitlines()
    assert first.startswith("shoal: the shell of this host uses the variable UID itself")
    assert second == "x y"


@pytest.mark.parametrize(
    ("text", "code", "log"),
    [
        ("kill 0; sleep 60", 143, ""),
        ("kill -9 0; sleep 60", 137, ""),
        ("kill -9 $$", 137, ""),
        ("exec true", 0, ""),
        ("set -efu; unset PATH IFS HOME; cd /; umask 777; exit 3", 3, ""),
        ("rm() { echo; }; cat() { echo; }; mkdir() { :; }; printf() { :; }; exit 4", 4, ""),
        ("trap 'echo bye; exit 5' EXIT TERM INT HUP; exit 6", 5, "bye\n"),
        ("trap '' TERM HUP INT; exec 0<&- 1>&- 2>&-; exit 7", 7, ""),
        ('rm -rf "${SHOAL_OUTPUT%/*}"; exit 8', 8, ""),
        ('rm -rf "${SHOAL_OUTPUT%/*}"; ln -s DATA "${SHOAL_OUTPUT%/*}"; exit 9', 9, ""),
        ('rm "$0"; mkfifo "$SHOAL_OUTPUT"; exit 10', 10, ""),
        ('ln -s /dev/zero "$SHOAL_OUTPUT"; exit 11', 11, ""),
        ('mkdir "$SHOAL_OUTPUT"; exit 12', 12, ""),
        ('ln -s DATA/kept "$SHOAL_OUTPUT"; exit 13', 13, ""),
        ("printf '@'; printf 'no end' >&2; exit 14", 14, "@no end"),
        ("set -- a b; d=DATA; code=0; t=DATA; export d code t; exit 15", 15, ""),
    ],
)
def test_whatever_a_script_does_to_its_shell_its_own_code_arrives(
    source: DataSource, tmp_path: Path, text: str, code: int, log: str
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "kept").touch()
    one = at(source, lambda host: said(host, script(text.replace("DATA", str(data)))))
    assert (one.code, one.outputs, one.log) == (code, b"", log)
    assert (data / "kept").exists()
    assert not left()


@pytest.mark.parametrize("more", ["exec true", "sleep 600"])
def test_script_that_ends_what_waits_for_it_does_not_succeed(source: DataSource, more: str) -> None:
    one = at(source, lambda host: ended(host, script(f"kill -9 $PPID; {more}")))
    assert "waits for it ended by signal 9" in str(one.code)
    assert not left()


def test_host_without_room_for_the_script_says_so(tmp_path: Path) -> None:
    files = tmp_path / "sshd"
    files.mkdir()
    with served(files, f"SetEnv TMPDIR={tmp_path}/nowhere\n") as one:
        told = at(one.source, lambda host: said(host, script("echo never")))
    assert "ended with exit code 1: mkdir: " in str(told.code)
    assert "never" not in told.log


def test_script_sees_the_host_as_without_the_task(tmp_path: Path) -> None:
    shown = 'env; umask; pwd; ulimit -a; set -o; trap; alias; echo "$# $IFS"; ls /proc/self/fd'
    own = " ".join(f"{name}=own" for name in sorted(names_of_programs() - {"TMPDIR"} | {"d", "x"}))
    files = tmp_path / "sshd"
    files.mkdir()
    file = tmp_path / "script"
    file.write_text(shown)

    async def direct(host: Host) -> str:
        command = f"sh {file} < /dev/null 2>&1"
        done = await host._connection.run(command)
        return str(done.stdout)

    def told(text: str) -> list[str]:
        own_to_a_process = re.compile(r"SHOAL_|_=|SHLVL=|SSH_CONNECTION=|SSH_CLIENT=")
        return sorted(line for line in text.splitlines() if not own_to_a_process.match(line))

    with served(files, f"SetEnv {own}\n") as one:
        as_task = at(one.source, lambda host: said(host, script(shown))).log
        by_hand = at(one.source, direct)
    assert "d=own" in told(by_hand)
    assert told(as_task) == told(by_hand)


def test_attempt_ends_with_its_script_though_its_output_is_held_open(
    source: DataSource, tmp_path: Path
) -> None:
    late = tmp_path / "late"
    text = (
        f"nohup sh -c 'sleep 30; : > {late}' &\n"
        "timeout 5 yes &\n"
        "echo '{}' > \"$SHOAL_OUTPUT\"\n"
        "echo done\n"
        "exit 3"
    )

    one = at(source, lambda host: ended(host, script(text)))
    assert (one.code, one.outputs) == (3, b"{}\n")
    assert "done" in one.log
    assert not late.exists()
    assert not left()


def test_no_character_is_broken_in_a_long_line(source: DataSource) -> None:
    line = "x" + "é€😀" * 60_000
    one = at(source, lambda host: said(host, script(f"cat <<'E'\n{line}\nE\nprintf '\\r…'")))
    assert (one.code, one.log) == (0, f"{line}\n\r…")


_LOGIN_SHELLS = ("dash", "bash", "busybox sh", "tcsh", *filter(shutil.which, ("fish", "zsh")))


@pytest.mark.parametrize("shell", _LOGIN_SHELLS)
def test_login_shells(shell: str, tmp_path: Path) -> None:
    files = tmp_path / "sshd"
    files.mkdir()
    name, *arguments = shell.split()
    started = " ".join([program(name), *arguments])
    # As sshd starts the shell of a user.
    forced = f'ForceCommand exec {started} -c "$SSH_ORIGINAL_COMMAND"\n'

    given = script('sleep 600 &\necho "$a!"; exit 7', {"a": "it's \\ \n!x"})
    with served(files, forced) as server:
        one = at(server.source, lambda host: ended(host, given))
    assert (one.code, one.log) == (7, "it's \\ \n!x!\n")
    assert not left()


def test_connection_that_breaks_while_the_script_is_sent_starts_nothing(
    source: DataSource, tmp_path: Path
) -> None:
    file = tmp_path / "ran"
    given = script(f": > {file}")
    given.program = given.program.removesuffix(b"}\n")
    one = at(source, lambda host: said(host, given))
    assert one.code != 0
    assert not file.exists()
