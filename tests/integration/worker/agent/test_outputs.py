"""What tasks give on: read from real tasks, reported exactly, never lost."""

import random
from pathlib import Path

import pytest

from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    WorkerProcess,
    log_text,
    spool,
    the_worker,
)
from tests.integration.worker.agent.parameters import AWKWARD, fields
from tests.support.fake_master import FakeMaster
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

MEGABYTE = "0123456789abcde\n" * (1 << 16)


async def outputs_of(master: FakeMaster, number: int) -> dict[str, str]:
    """What a task that must succeed has given on."""
    task = await master.table.ended(number)
    assert task.report is not None
    assert task.state == "SUCCEEDED", task.report.reason
    return dict(task.report.outputs)


async def failure_of(master: FakeMaster, number: int) -> str:
    task = await master.table.ended(number)
    assert task.report is not None
    assert task.state == "FAILED"
    assert not task.report.outputs
    return task.report.reason


async def test_outputs_come_from_the_file_and_from_the_log(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    script = """
        set -eu
        echo 'by file=no' | sed 's/by file/a/' >> "$SHOAL_OUTPUT"
        printf '%s\\n' '{"b": "two\\nlines", "c": [1, "ü"]}' >> "$SHOAL_OUTPUT"
        echo '${setValue(d=f(x) = "y"})}'
        echo "\\${setValue(a=log)}" >&2
    """
    number = await master.submit("SHELL", {"script": script}, outputs_from_log=True)
    found = await outputs_of(master, number)
    assert found == {"a": "no", "b": "two\nlines", "c": '[1,"ü"]', "d": 'f(x) = "y"}'}
    assert "${setValue(d=" in log_text(cluster.data, number)


async def test_what_a_task_only_shows_sets_nothing_and_fails_nothing(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    """It may be what a stranger has written."""
    shown = ["comment: ${setValue(GIT_SSH_COMMAND=touch x)}", "${setValue(a=1)}"]
    script = "printf '%s\\n' \"$@\""
    careful = await master.submit("SHELL", {"script": script, "arguments": shown})
    assert await outputs_of(master, careful) == {}
    shown.append("${setValue(PATH=x)}")
    asking = {"script": script, "arguments": shown}
    number = await master.submit("SHELL", asking, outputs_from_log=True)
    assert await outputs_of(master, number) == {"a": "1"}


async def test_value_that_is_not_declared_is_a_variable_with_a_prefix_only(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    number = await master.submit(
        "SHELL",
        {"script": 'echo "$http_proxy-$day-$SHOAL_PARAM_HTTP_PROXY"'},
        parameters={"http_proxy": "x", "day": "1"},
        undeclared=["http_proxy"],
    )
    await outputs_of(master, number)
    assert log_text(cluster.data, number) == "-1-x\n"


def random_values(seed: int) -> dict[str, str]:
    """Texts of the characters that shells, JSON and protocols stumble over."""
    random_ = random.Random(seed)
    hard = "'\"`$(){}[]\\;&|<>*?~!#%=+- \t\n\r\x01\x7f\x85\u2028é魚🐟ab1"
    return {
        f"v{n}": "".join(random_.choices(hard, k=random_.choice((0, 1, 3, 30, 300))))
        for n in range(40)
    }


@pytest.mark.parametrize("seed", [1, 2])
async def test_values_pass_from_task_to_task_byte_by_byte(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, seed: int
) -> None:
    """First into a JSON file and out of it as outputs, then into the next one's environment."""
    given = {**AWKWARD, **random_values(seed), "megabyte": MEGABYTE}
    giver = await master.submit(
        "SHELL", {"script": 'cat "$SHOAL_PARAMETERS" > "$SHOAL_OUTPUT"'}, parameters=given
    )
    passed = await outputs_of(master, giver)
    assert passed == given
    small = [name for name in given if name != "megabyte"]
    script = "\n".join(f'printf "%s\\0" "${{{name}}}"' for name in small)
    taker = await master.submit("SHELL", {"script": script}, parameters=passed)
    await outputs_of(master, taker)
    _, _, printed = log_text(cluster.data, taker).partition("\n")  # behind the note
    assert dict(zip(small, fields(printed), strict=True)) == {n: given[n] for n in small}


async def test_bad_outputs_fail_the_attempt_with_the_line(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    script = 'printf "a=1\\nPATH=/evil\\n" > "$SHOAL_OUTPUT"'
    number = await master.submit("SHELL", {"script": script})
    reason = await failure_of(master, number)
    assert reason.startswith("its outputs cannot be used: output file, line 2: 'PATH' is reserved")
    folder = await master.submit("SHELL", {"script": 'mkdir "$SHOAL_OUTPUT"'})
    assert "not a regular file" in await failure_of(master, folder)


async def test_failed_task_gives_nothing_on(master: FakeMaster, worker: InProcessWorker) -> None:
    number = await master.submit("SHELL", {"script": 'echo a=1 > "$SHOAL_OUTPUT"; exit 3'})
    assert await failure_of(master, number) == "exit code 3"


async def test_outputs_survive_the_worker_that_could_not_report_them(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    with WorkerProcess(cluster) as worker:
        await the_worker(master.session, pid=worker.pid)
        script = f"until [ -e '{tmp_path}/go' ]; do sleep 0.02; done; echo a=1 > $SHOAL_OUTPUT"
        number = await master.submit("SHELL", {"script": script})
        await master.table.wait(number, "RUNNING")
        master.open.clear()
        (tmp_path / "go").touch()
        await eventually(lambda: spool(cluster.data) == [str(number)])
    master.open.set()
    with WorkerProcess(cluster):
        assert await outputs_of(master, number) == {"a": "1"}


async def test_outputs_that_fill_several_messages_are_all_delivered(
    master: FakeMaster, cluster: ClusterSettings, tmp_path: Path
) -> None:
    """After an outage: they wait together, and one call can carry 16 MiB."""
    count = 7
    lines = "; ".join(
        f'printf {name}= >> "$SHOAL_OUTPUT"; head -c 1000000 /dev/zero | tr "\\0" {name} '
        f'>> "$SHOAL_OUTPUT"; echo >> "$SHOAL_OUTPUT"'
        for name in "abc"
    )
    script = f"until [ -e '{tmp_path}/go' ]; do sleep 0.02; done; {lines}"
    async with InProcessWorker(cluster, slots=count):
        numbers = await master.submit_many(count, "SHELL", {"script": script})
        for number in numbers:
            await master.table.wait(number, "RUNNING")
        master.open.clear()
        (tmp_path / "go").touch()
        await eventually(lambda: len(spool(cluster.data)) == count)
        master.open.set()
        expected = {name: name * 1_000_000 for name in "abc"}
        for number in numbers:
            assert await outputs_of(master, number) == expected


async def test_outputs_are_not_lost_with_a_record_that_the_disk_refuses(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    folder = cluster.data / "workers" / "w" / "1" / "spool"
    script = f'echo a=1 > "$SHOAL_OUTPUT"; echo "\\${{setValue(b=2)}}"; mkdir -p "{folder}"/.$N'
    script = script.replace("$N", "$SHOAL_TASK_INSTANCE_ID.json.tmp")
    number = await master.submit("SHELL", {"script": script}, outputs_from_log=True)
    assert await outputs_of(master, number) == {"a": "1", "b": "2"}
