"""Secrets reach the task alone: neither its log, nor its outputs, nor its reasons."""

import json
from pathlib import Path

from shoal.proto.channels import Channels
from shoal.runtime.settings import ClusterSettings
from tests.integration.worker.agent.kit import (
    InProcessWorker,
    WorkerProcess,
    alive,
    children,
    everything_below,
    kill,
    log_file,
    log_text,
    the_worker,
    until,
)
from tests.support.fake_master import FakeMaster
from tests.support.waiting import eventually

pytest_plugins = ["tests.integration.worker.agent.fixtures"]

SECRET = 'hush\'s "word" $(touch ran)\nsecond line\tü'


async def test_task_has_the_secret_and_its_log_has_not(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, tmp_path: Path
) -> None:
    script = f"""
        printf %s "$SHOAL_SECRET_db" > '{tmp_path}/got'
        echo "password: $SHOAL_SECRET_db."
        echo "$SHOAL_SECRET_db" | tail -1 >&2
        ls
    """
    number = await master.submit("SHELL", {"script": script}, secrets={"db": SECRET})
    assert (await master.table.ended(number)).state == "SUCCEEDED"
    assert (tmp_path / "got").read_text() == SECRET
    assert log_text(cluster.data, number) == "password: ***.\n***\nparameters.json\nscript.sh\n"
    assert b"second line" not in everything_below(cluster.data)
    assert log_file(cluster.data, number).stat().st_mode & 0o777 == 0o600


async def test_secret_is_in_no_output_and_no_reason(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    script = 'python3 -c \'import json, os; print(json.dumps({"a": os.environ["SHOAL_SECRET_db"]}))'
    script += '\' > "$SHOAL_OUTPUT"; echo "\\${setValue(b=x${SHOAL_SECRET_db##*word}y)}"'
    secret = "password-word-number-1"
    number = await master.submit(
        "SHELL",
        {"script": script},
        secrets={"db": secret, "rest": "-number-1"},
        outputs_from_log=True,
    )
    task = await master.table.ended(number)
    assert task.report is not None
    assert dict(task.report.outputs) == {"a": "***", "b": "x***y"}
    bad = 'echo "no name $SHOAL_SECRET_db" > "$SHOAL_OUTPUT"'
    failing = await master.submit("SHELL", {"script": bad}, secrets={"db": secret})
    report = (await master.table.ended(failing)).report
    assert report is not None
    assert "no name ***" in report.reason
    assert secret not in report.reason


async def test_secrets_are_not_in_the_parameters_of_the_next_task_or_the_file(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    script = 'cat "$SHOAL_PARAMETERS"; env | grep -c SHOAL_SECRET_'
    first = await master.submit("SHELL", {"script": script}, secrets={"db": "hush-hush"})
    await master.table.ended(first)
    assert log_text(cluster.data, first) == "{}1\n"
    second = await master.submit("SHELL", {"script": script})
    await master.table.ended(second)
    assert log_text(cluster.data, second) == "{}0\n"


async def test_masked_log_is_complete_and_followed_as_it_grows(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings, tmp_path: Path
) -> None:
    script = f"""
        echo "first $SHOAL_SECRET_db"
        {until(tmp_path / "go")}
        seq 1 200000 | sed "s/7777$/$SHOAL_SECRET_db/"
        printf "no newline at the end, hush"
    """
    number = await master.submit("SHELL", {"script": script}, secrets={"db": "hush-hush"})
    await master.table.wait(number, "RUNNING")
    await eventually(lambda: log_file(cluster.data, number).exists())
    await eventually(lambda: log_text(cluster.data, number) == "first ***\n")
    (tmp_path / "go").touch()
    assert (await master.table.ended(number)).state == "SUCCEEDED"
    numbers = [
        str(n).removesuffix("7777") + "***" * str(n).endswith("7777") for n in range(1, 200_001)
    ]
    expected = "\n".join(["first ***", *numbers, "no newline at the end, hush"])
    assert log_text(cluster.data, number) == expected


async def test_what_detaches_is_killed_and_its_words_are_masked_as_well(
    master: FakeMaster, worker: InProcessWorker, cluster: ClusterSettings
) -> None:
    """A detached process holds the pipe open: it is not waited for."""
    detached = "echo $SHOAL_SECRET_db; touch said; exec sleep 1000"
    script = f"(setsid sh -c '{detached}' &); {until(Path('said'))}; echo done"
    number = await master.submit("SHELL", {"script": script}, secrets={"db": "hush-hush"})
    assert (await master.table.ended(number)).state == "SUCCEEDED"
    assert sorted(log_text(cluster.data, number).splitlines()) == ["***", "done"]


async def test_kill_ends_a_task_with_secrets_like_any_other(
    master: FakeMaster, worker: InProcessWorker, channels: Channels, cluster: ClusterSettings
) -> None:
    """And what was held back, as it could have become a secret, is in the log then."""
    script = "trap '' TERM; echo $SHOAL_SECRET_db; printf 'last hu'; sleep 1000"
    number = await master.submit("SHELL", {"script": script}, secrets={"db": "hush-hush"})
    await master.table.wait(number, "RUNNING")
    await eventually(lambda: log_file(cluster.data, number).exists())
    await eventually(lambda: log_text(cluster.data, number) == "***\nlast ")
    await kill(channels, await the_worker(master.session), number)
    assert (await master.table.ended(number)).state == "KILLED"
    assert log_text(cluster.data, number) == "***\nlast hu"


async def test_program_that_cannot_start_says_so_with_secrets_too(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    params = {"script": "print()", "interpreter": "/no/python"}
    number = await master.submit("PYTHON", params, secrets={"db": "hush-hush"})
    report = (await master.table.ended(number)).report
    assert report is not None
    assert "cannot run '/no/python'" in report.reason


async def test_more_secrets_than_fit_fail_the_attempt(
    master: FakeMaster, worker: InProcessWorker
) -> None:
    secrets = {f"s{n}": f"{n}" * 32_000 for n in range(9)}
    number = await master.submit("SHELL", {"script": "true"}, secrets=secrets)
    report = (await master.table.ended(number)).report
    assert report is not None
    assert "288,000 bytes, at most 262,144 fit" in report.reason
    assert len(json.dumps(report.reason)) < 500


async def test_filter_dies_with_the_worker(master: FakeMaster, cluster: ClusterSettings) -> None:
    with WorkerProcess(cluster) as worker:
        await the_worker(master.session, pid=worker.pid)
        number = await master.submit(
            "SHELL", {"script": "echo $SHOAL_SECRET_db; sleep 1000"}, secrets={"db": "hush-hush"}
        )
        await master.table.wait(number, "RUNNING")
        await eventually(lambda: log_text(cluster.data, number) == "***\n")
        (watchdog,) = children(worker.pid)
        (launcher,) = children(watchdog.pid)
        below = children(launcher.pid)
        assert len(below) == 2  # the shim of the task and its filter
        launcher.kill()
        await eventually(lambda: not any(alive(one.pid) for one in below))
