"""What SSH tasks send to a host, and how they take its answers apart."""

import re
import shlex
from itertools import pairwise

import pytest

from shoal.worker.types.ssh import remote
from shoal.worker.types.ssh.host import _MarkedAnswer


@pytest.mark.parametrize(
    "command", [remote.RemoteScript("", "sh", {}).command("t-1"), remote.end("t-1")]
)
def test_command_lines_mean_the_same_to_every_login_shell(command: str) -> None:
    quoted = re.findall("'([^']*)'", command)
    assert len(quoted) == 1
    assert not set(quoted[0]) & set("\\!\n")  # a csh or fish reads these in quotes, too
    around = command.replace(f"'{quoted[0]}'", "")
    assert re.fullmatch(r"[A-Za-z0-9_.= -]+", around)
    assert shlex.split(command).count(quoted[0]) == 1


def test_no_command_line_holds_a_mark_a_value_or_the_script() -> None:
    script = remote.RemoteScript("echo the script", "sh", {"name": "the value"})
    command = script.command("t-1")
    assert "the" not in command.split()
    assert script.mark.decode() not in command
    assert script.mark[1:].decode() not in command


@pytest.mark.parametrize("before", ["", "one line\n", "étoile", "@", "a@\n@@b", "@12@", "@123@12"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_answer_between_marks_however_it_is_cut(before: str, size: int) -> None:
    mark = b"@1234"
    answer = "é\n@12 7".encode()
    stream = before.encode() + mark + answer + mark + b"more"
    logged = bytearray()
    taken = _MarkedAnswer(mark, logged.extend)
    cuts = [*range(0, len(stream), size), len(stream)]
    for start, stop in pairwise(cuts):
        taken.add(stream[start:stop])
    taken.flush()
    assert (taken.text, bytes(logged)) == (answer, before.encode())


def test_stream_that_ends_in_the_beginning_of_a_mark() -> None:
    logged = bytearray()
    taken = _MarkedAnswer(b"@1234", logged.extend)
    taken.add(b"hello @12")
    assert logged == b"hello "
    taken.flush()
    assert taken.text is None
    assert logged == b"hello @12"
