"""What reaches a task: parameters byte by byte, its identity, and nothing else."""

import json
import os
from pathlib import Path

import pytest

from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import InProcessWorker, log_text
from tests.integration.worker.agent.parameters import AWKWARD, fields
from tests.support.fake_master import FakeMaster

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

LARGE = {"large": "0123456789\n" * 20_000, "nul": "a\0b"}


async def test_shell_gets_every_value_as_it_is_and_runs_none(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    lines = [f'printf "%s\\0" "${{{name}}}" "$SHOAL_PARAM_{name.upper()}"' for name in AWKWARD]
    script = "\n".join([*lines, "ls"])
    number = await master.submit("SHELL", {"script": script}, parameters=AWKWARD)
    assert (await master.table.ended(number)).state == "SUCCEEDED"
    *values, listing = log_text(cluster.data, number).split("\0")
    assert values == [value for value in AWKWARD.values() for _ in (1, 2)]
    assert listing.split() == ["parameters.json", "script.sh"]


@pytest.mark.parametrize("kind", ["SHELL", "PYTHON"])
async def test_the_file_has_every_value_however_large(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, kind: str
) -> None:
    script = {
        "SHELL": 'set -eu; cat "$SHOAL_PARAMETERS"; test -z "${large+x}"; test -z "${nul+x}"',
        "PYTHON": "import os\nprint(open(os.environ['SHOAL_PARAMETERS'], 'rb').read().decode())",
    }[kind]
    given = AWKWARD | LARGE
    number = await master.submit(kind, {"script": script}, parameters=given)
    assert (await master.table.ended(number)).state == "SUCCEEDED"
    *notes, content = log_text(cluster.data, number).split("\n", 2)
    for note, (name, value) in zip(notes, LARGE.items(), strict=True):
        assert note.startswith(f"shoal: the parameter {name} is not an environment variable")
        assert f"{len(value):,} bytes" in note
    assert json.loads(content) == given


async def test_python_gets_every_value_and_argument_as_it_is(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    script = (
        "import json, os, sys\n"
        f"json.dump([dict(os.environ), sys.argv[1:]], open({str(out)!r}, 'w'))\n"
    )
    arguments = ["--date", *AWKWARD.values()]
    params = {"script": script, "arguments": arguments}
    number = await master.submit("PYTHON", params, parameters=AWKWARD)
    assert (await master.table.ended(number)).state == "SUCCEEDED"
    environment, argv = json.loads(out.read_text())
    assert argv == arguments
    for name, value in AWKWARD.items():
        assert environment[name] == value
        assert environment[f"SHOAL_PARAM_{name.upper()}"] == value


async def test_task_knows_which_one_it_is_and_nothing_of_the_worker(
    master: FakeMaster, cluster: ClusterSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_DATABASE_URL", "postgresql://user:secret@host/db")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("PROXY", "http://proxy")
    async with InProcessWorker(cluster, env_pass="PROXY, NOT_SET"):
        parameters = {"PYTHONSTARTUP": "/evil.py", "day": "1", "PROXY": "mine"}
        number = await master.submit("SHELL", {"script": "env -0"}, parameters=parameters)
        assert (await master.table.ended(number)).state == "SUCCEEDED"
    environment = dict(field.split("=", 1) for field in fields(log_text(cluster.data, number)))
    assert "secret" not in str(environment)
    assert environment["PROXY"] == "http://proxy"
    assert environment["SHOAL_PARAM_PROXY"] == "mine"
    assert environment["PATH"] == os.environ["PATH"]
    assert "PYTHONSTARTUP" not in environment
    assert environment["SHOAL_PARAM_PYTHONSTARTUP"] == "/evil.py"
    expected = {
        "SHOAL_TASK_INSTANCE_ID": str(number),
        "SHOAL_WORKFLOW_INSTANCE_ID": "7",
        "SHOAL_PROJECT": "tests",
        "SHOAL_WORKFLOW": "wf",
        "SHOAL_TASK": f"task-{number}",
        "SHOAL_ATTEMPT": "1",
        "SHOAL_EPOCH": "99",
        "SHOAL_LOGICAL_TIME": "2023-11-14T23:13:20+01:00",
        "SHOAL_TIMEZONE": "Europe/Berlin",
    }
    assert expected.items() <= environment.items()
    assert environment["TMPDIR"].endswith(f"/work/{number}")
    assert environment["SHOAL_OUTPUT"] == environment["TMPDIR"] + "/output"


async def test_folder_and_files_of_an_attempt_are_private(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    script = 'stat -c "%a %F" . parameters.json script.sh'
    number = await master.submit("SHELL", {"script": script})
    await master.table.ended(number)
    assert log_text(cluster.data, number).splitlines() == [
        "700 directory",
        "600 regular file",
        "700 regular file",
    ]
