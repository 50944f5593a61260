"""Environments on a worker: variables, a real virtual environment, and a setup that is sourced."""

import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from shoal.worker.processes.environment import READY_FILE, SETUP_FILE
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    alive,
    kill,
    log_text,
    the_worker,
    work_folders,
)
from tests.support.fake_master import FakeMaster
from tests.support.packages import installed
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

NOTE = "shoal: environment: ml@3"
SHOW_PYTHON = "import sys, os; print(sys.prefix); print(os.environ.get('VIRTUAL_ENV'))"


def ml(**fields: Any) -> pb.Environment:
    return pb.Environment(name="ml", version=3, **fields)


@pytest.fixture(scope="module")
def virtual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment, with a program and a package of its own."""
    folder = tmp_path_factory.mktemp("opt") / "venv of ml"
    venv.create(folder, symlinks=True, with_pip=False)
    (folder / "bin" / "own-tool").write_text("#!/bin/sh\necho the tool of ml\n")
    (folder / "bin" / "own-tool").chmod(0o755)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (folder / "lib" / version / "site-packages" / "only_here.py").write_text("WORD = 'found'\n")
    return folder


async def ended(
    master: FakeMaster, kind: str, params: dict[str, Any], environment: pb.Environment, **rest: Any
) -> tuple[int, str, pb.Report]:
    """Run a task to its end; return its number, its state and the report."""
    number = await master.submit(kind, params, environment=environment, **rest)
    task = await master.table.ended(number)
    assert task.report is not None
    return number, task.state, task.report


async def shown(
    master: FakeMaster,
    cluster: ClusterSettings,
    kind: str,
    params: dict[str, Any],
    environment: pb.Environment,
    **rest: Any,
) -> list[str]:
    """Run a task that ends well; return what it has printed."""
    number, state, report = await ended(master, kind, params, environment, **rest)
    assert state == "SUCCEEDED", report.reason + log_text(cluster.data, number)
    first, *lines = log_text(cluster.data, number).splitlines()
    assert first == NOTE
    return lines


async def test_virtual_environment_is_that_of_python_and_of_the_programs_in_it(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, virtual: Path
) -> None:
    given = ml(python=str(virtual))
    script = f"import only_here\n{SHOW_PYTHON}\nprint(only_here.WORD)"
    lines = await shown(master, cluster, "PYTHON", {"script": script}, given)
    assert lines == [str(virtual), str(virtual), "found"]
    script = f'own-tool; python -c "{SHOW_PYTHON}"; echo "$PATH"'
    lines = await shown(master, cluster, "SHELL", {"script": script}, given)
    assert lines[:3] == ["the tool of ml", str(virtual), str(virtual)]
    first, rest = lines[3].split(":", 1)
    assert (first, bool(rest)) == (str(virtual / "bin"), True)
    as_a_file = ml(python=str(virtual / "bin" / "python3"))
    lines = await shown(master, cluster, "PYTHON", {"script": SHOW_PYTHON}, as_a_file)
    assert lines == [str(virtual), str(virtual)]


async def test_task_that_names_an_interpreter_has_that_one(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, virtual: Path
) -> None:
    params = {"script": "import sys; print(sys.prefix)", "interpreter": sys.executable}
    assert await shown(master, cluster, "PYTHON", params, ml(python=str(virtual))) == [sys.prefix]


async def test_virtual_environment_of_the_worker_is_not_that_of_another_python(
    master: FakeMaster,
    cluster: ClusterSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/of/the/worker")
    plain = tmp_path / "plain" / "bin" / "python"
    plain.parent.mkdir(parents=True)
    plain.symlink_to(sys.executable)
    script = {"script": 'echo "${VIRTUAL_ENV-none}"'}
    async with InProcessWorker(cluster):
        of_plain = await shown(master, cluster, "SHELL", script, ml(python=str(plain)))
        without = await shown(master, cluster, "SHELL", script, ml(variables={"a": "b"}))
    assert (of_plain, without) == (["none"], ["/of/the/worker"])


async def test_variables_come_between_the_workers_and_the_parameters(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    verbatim = "${day} $[yyyy] $(id) 'x' \"y\"\n\\ ä"
    given = ml(variables={"DAY": "wednesday", "LANG": "C", "kept": verbatim, "JAVA_HOME": "/jdk"})
    script = 'printf "%s|" "$DAY" "$LANG" "$JAVA_HOME" "$SHOAL_TASK" "$kept"'
    lines = await shown(
        master,
        cluster,
        "SHELL",
        {"script": script},
        given,
        parameters={"DAY": "monday", "LANG": "de", "JAVA_HOME": "/other", "SHOAL_TASK": "x"},
    )
    number = max(master.table.tasks)
    assert "\n".join(lines) == f"monday|C|/jdk|task-{number}|{verbatim}|"


async def test_setup_is_sourced_before_programs_of_every_type(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "late").write_text("#!/bin/sh\necho found in PATH\n")
    (tmp_path / "bin" / "late").chmod(0o755)
    setup = f"""
        activate() {{ export ACTIVATED="$1"; }}   # bash, and what people source
        activate yes
        export PATH="{tmp_path}/bin:$PATH"
        read -r line && echo "input was eaten: $line"
        umask 027
        ulimit -n 64
        set -- other arguments; shift
        cd /
        set -eu -o pipefail
    """
    given = ml(setup=setup)
    script = 'late; echo "$ACTIVATED $1 $(umask) $(ulimit -n)"; test "$PWD" -ef "$TMPDIR"; echo $?'
    params = {"script": script, "arguments": ["a  'b'"]}
    lines = await shown(master, cluster, "SHELL", params, given)
    assert lines == ["found in PATH", "yes a  'b' 0027 64", "0"]
    script = "import os, sys; print(os.environ['ACTIVATED'], sys.argv[1:], sys.stdin.read() == '')"
    params = {"script": script, "arguments": ["a b"]}
    assert await shown(master, cluster, "PYTHON", params, given) == ["yes ['a b'] True"]
    await eventually(lambda: work_folders(cluster.data) == [])


@pytest.mark.parametrize(
    ("setup", "code", "words"),
    [
        ("echo it is not installed >&2; false", 1, "exit code 1: it is not installed"),
        ("return 7", 7, "exit code 7"),
        ("exit 9", 9, "exit code 9"),
        ("exit 0", 1, "exit code 1: the setup has called exit"),
        ("set -e\nno-such-command\necho not reached", 127, "no-such-command"),
        ("if", 2, "syntax error"),
    ],
)
async def test_setup_that_fails_fails_the_task_and_its_program_never_starts(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    tmp_path: Path,
    setup: str,
    code: int,
    words: str,
) -> None:
    params = {"script": f"touch '{tmp_path}/begun'"}
    number, state, report = await ended(master, "SHELL", params, ml(setup=setup))
    assert (state, report.exit_code) == ("FAILED", code)
    assert report.reason.startswith("the setup of environment ml@3 failed: exit code")
    assert words in report.reason
    assert not (tmp_path / "begun").exists()
    assert log_text(cluster.data, number).splitlines()[0] == NOTE
    assert report.environment == "ml@3"


@pytest.mark.parametrize("setup", ["exec true", "set -n"])
async def test_success_of_another_program_than_the_tasks_is_none(
    master: FakeMaster, worker: InProcessWorker, tmp_path: Path, setup: str
) -> None:
    params = {"script": f"touch '{tmp_path}/begun'"}
    _, state, report = await ended(master, "SHELL", params, ml(setup=setup))
    assert state == "FAILED"
    words = "the setup of environment ml@3 failed: it has become another program"
    assert report.reason.startswith(words)
    assert not (tmp_path / "begun").exists()


async def test_program_that_fails_is_not_blamed_on_the_setup(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    given = ml(setup="export A=1")
    _, state, report = await ended(master, "SHELL", {"script": "echo no; exit 5"}, given)
    assert (state, report.reason) == ("FAILED", "exit code 5: no")
    params = {"script": "print()", "interpreter": "no-such-python"}
    _, state, report = await ended(master, "PYTHON", params, given)
    assert (state, report.exit_code) == ("FAILED", 127)
    assert "no-such-python: not found" in report.reason


async def test_what_the_worker_does_not_have_is_told_with_environment_and_group(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    no_program = tmp_path / "text"
    no_program.write_text("")
    async with InProcessWorker(cluster, group="gpu"):
        given = ml(python=str(tmp_path / "gone"))
        number, state, report = await ended(
            master, "PYTHON", {"script": "print()"}, given, group="gpu"
        )
        assert (state, report.environment) == ("FAILED", "ml@3")
        assert report.reason == (
            f"environment ml: this worker has no {tmp_path}/gone; make it on all workers of the "
            "group, or name another one with `shoal environment set ml --python PATH` "
            "(worker group gpu)"
        )
        assert report.reason in log_text(cluster.data, number)
        _, state, report = await ended(
            master, "SHELL", {"script": "true"}, ml(python=str(no_program)), group="gpu"
        )
        assert state == "FAILED"
        assert report.reason == (
            f"environment ml: {no_program} cannot be run on this worker (worker group gpu)"
        )
        given = ml(setup="true", variables={"PATH": "/nowhere"})
        _, state, report = await ended(master, "SHELL", {"script": "true"}, given, group="gpu")
        assert "needs bash, which is not in the PATH of this worker" in report.reason


async def test_types_that_start_programs_of_others_have_it_and_shoals_own_python_is_not_steered(
    master: FakeMaster, worker: InProcessWorker, tmp_path: Path
) -> None:
    wrong = {"PYTHONHOME": "/no/such", "PYTHONPATH": str(tmp_path), "SPARK_HOME": "/no/such"}
    given = ml(variables=wrong, setup="export SPARK_HOME=/from/the/setup")
    params = {"script": "print()", "master": "local"}
    _, state, report = await ended(master, "SPARK", params, given)
    assert state == "FAILED"
    assert "SPARK_HOME=/from/the/setup has no bin/spark-submit" in report.reason
    (tmp_path / "a.jar").write_text("")
    params = {"jar": str(tmp_path / "a.jar")}
    _, state, report = await ended(master, "MR", params, given)
    assert state == "FAILED"
    assert "SPARK_HOME=/from/the/setup has no bin/spark-submit" in report.reason


async def test_types_that_start_programs_of_others_are_told_by_standard_input(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    """Which is theirs alone, secrets included: no setup gets to see it."""
    given = ml(variables={"SPARK_HOME": "/no/such"}, setup="cat; echo read all")
    params = {"script": "print()", "master": "local"}
    number, _, report = await ended(master, "SPARK", params, given)
    assert "SPARK_HOME=/no/such has no bin/spark-submit" in report.reason
    assert log_text(cluster.data, number).splitlines()[:2] == [NOTE, "read all"]


PLUGIN = """
from pathlib import Path
from shoal.core.task_types import Settling, TaskParams, TaskType

class Params(TaskParams):
    notes: str

class Leaves(TaskType[Params]):
    Params = Params

    async def run(self, context, params):
        return await context.run_process(["sh", "-c", f"echo begun >>{params.notes}; exit 3"])

    def settling(self, context, params):
        return Settling(["sh", "-c", f"echo settled by $TOOL >>{params.notes}"])
"""


@pytest.fixture
def leaves(tmp_path: Path) -> Iterator[None]:
    """Install a type that leaves something running elsewhere."""
    point = {"LEAVES": "leaves_type:Leaves"}
    with installed(tmp_path, "shoal.task_types", point, leaves_type=PLUGIN):
        yield


async def test_what_a_program_has_left_is_settled_in_its_environment(
    leaves: None, master: FakeMaster, worker: InProcessWorker, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    given = ml(setup="export TOOL=hadoop")
    _, state, report = await ended(master, "LEAVES", {"notes": str(notes)}, given)
    assert (state, report.reason) == ("FAILED", "exit code 3")
    assert notes.read_text() == "begun\nsettled by hadoop\n"


async def test_program_that_its_setup_did_not_reach_has_left_nothing(
    leaves: None, master: FakeMaster, worker: InProcessWorker, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    _, state, report = await ended(master, "LEAVES", {"notes": str(notes)}, ml(setup="exit 4"))
    assert (state, report.exit_code) == ("FAILED", 4)
    assert not notes.exists()


async def test_kill_and_timeout_in_the_middle_of_a_setup_end_all_of_it(
    master: FakeMaster,
    worker: InProcessWorker,
    cluster: ClusterSettings,
    tmp_path: Path,
    channels: Channels,
) -> None:
    member = await the_worker(master.session)
    setup = f"setsid sleep 1000 & echo $! >'{tmp_path}/pid'; sleep 1000"
    begun = await master.submit("SHELL", {"script": "true"}, environment=ml(setup=setup))
    await eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    pid = int((tmp_path / "pid").read_text())
    await kill(channels, member, begun)
    task = await master.table.ended(begun)
    assert (task.state, alive(pid)) == ("KILLED", False)
    given = ml(setup="sleep 1000")
    _, state, report = await ended(master, "SHELL", {"script": "true"}, given, timeout_s=0.3)
    assert state == "FAILED"
    assert "timed out" in report.reason


async def test_secrets_that_a_setup_prints_are_masked(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    given = ml(setup='echo "it is $SHOAL_SECRET_token"')
    secrets = {"token": "open sesame"}
    lines = await shown(master, cluster, "SHELL", {"script": "true"}, given, secrets=secrets)
    assert lines == ["it is ***"]


async def test_reports_of_start_and_end_name_the_environment(
    master: FakeMaster, worker: InProcessWorker, channels: Channels
) -> None:
    begun = await master.submit("SHELL", {"script": "sleep 1000"}, environment=ml(setup="true"))
    await master.table.wait(begun, "RUNNING")
    member = await the_worker(master.session)
    await kill(channels, member, begun)
    await master.table.ended(begun)
    said = [(report.kind, report.environment) for report in master.reports]
    assert said == [(pb.STARTED, "ml@3"), (pb.KILLED, "ml@3")]


async def test_task_without_an_environment_has_no_trace_of_one(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    script = {"script": f"ls -a; test ! -e {SETUP_FILE} && test ! -e {READY_FILE}"}
    number = await master.submit("SHELL", script)
    task = await master.table.ended(number)
    assert (task.state, task.report and task.report.environment) == ("SUCCEEDED", "")
    assert "environment" not in log_text(cluster.data, number)
