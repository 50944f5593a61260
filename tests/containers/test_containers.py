"""CONTAINER tasks at real engines."""

import json
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from shoal.worker.types.container.kind import INSIDE
from tests.containers.conftest import Tasks

# Ignores SIGTERM, with a child that leaves its session.
STUBBORN = 'trap "" TERM; (while :; do sleep 1; done) & echo started; while :; do sleep 1; done'
POLITE = "trap 'echo leaving; exit 0' TERM; echo started; while :; do sleep 0.1; done"


def test_output_exit_code_and_outputs(tasks: Tasks) -> None:
    script = (
        'echo "on $SHOAL_PARAM_WHAT, ${what}, $MODE, $1"\n'
        'printf "no line end\\n\\nétoile"\n'
        'cat "$SHOAL_PARAMETERS" > "$SHOAL_OUTPUT"\n'
    )
    what = "a 'b'; $(touch /pwned) \\ \"c\""
    ended = tasks.ran(
        script,
        params={"arguments": ["sh", "an $(argument)"], "environment": {"MODE": "fast"}},
        parameters={"what": what},
        env={"what": what, "SHOAL_PARAM_WHAT": what, "SHOAL_TASK": "t"},
    )
    assert ended.code == 0, ended.log
    assert ended.settled
    assert ended.outputs == {"what": what}
    assert f"on {what}, {what}, fast, an $(argument)\n" in ended.log
    assert ended.log.endswith("no line end\n\nétoile")
    assert not tasks.engine.containers()


def test_exit_code_is_the_results(tasks: Tasks) -> None:
    ended = tasks.ran("echo why >&2; exit 7")
    assert (ended.code, ended.reason, ended.settled) == (7, "", True)
    assert ended.log.endswith("why\n")
    assert not tasks.engine.containers()


def test_nothing_of_the_machine_is_within_reach(tasks: Tasks) -> None:
    script = (
        "id -u; cat /proc/self/status; ls /proc/sys/net/ipv4/conf\n"
        f"touch {INSIDE}/new 2>&1 || echo read-only"
    )
    ended = tasks.ran(script, params={"user": "1000:1000"})
    lines = ended.log.splitlines()
    assert "1000" in lines
    assert "CapEff:\t0000000000000000" in lines
    assert "NoNewPrivs:\t1" in lines
    assert "read-only" in lines
    assert {"all", "default", "lo"} == {line for line in lines if line in ("all", "default", "lo")}
    assert not [line for line in lines if line.startswith("eth")]


def test_limits_reach_the_container(tasks: Tasks) -> None:
    with tasks.begun(
        POLITE, params={"memory": "64m", "cpus": 0.5, "pids": 50, "init": False}
    ) as process:
        process.until("started")
        [one] = tasks.engine.containers()
        host = one.attrs["HostConfig"]
        assert (host["Memory"], host["PidsLimit"], host["Privileged"]) == (64 << 20, 50, False)
        assert host["NanoCpus"] == 500_000_000
        assert host["NetworkMode"] == "none"
        process.signal(signal.SIGTERM)
        process.ended()


def test_too_much_memory_is_the_reason(tasks: Tasks) -> None:
    # /dev/zero into a variable of the shell: its own memory.
    ended = tasks.ran(
        "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo never", params={"memory": "32m"}
    )
    assert ended.code == 137, ended.log
    # Podman 4.3 does not say of a container that it was this.
    assert "used more memory than its limit of 32m" in ended.reason
    assert ("perhaps" in ended.reason) <= (tasks.engine.name == "podman")
    assert ended.settled


def test_secrets_are_files_that_the_engine_does_not_show(tasks: Tasks) -> None:
    canary = "canary-5f3a91c2"
    script = (
        f"cat {INSIDE}/secrets/pw; cat $SHOAL_PARAMETERS > $SHOAL_OUTPUT; env\n"
        f"touch {INSIDE}/secrets/pw 2>/dev/null && echo writable\n" + POLITE
    )
    with tasks.begun(
        script,
        params={"secrets": {"pw": canary}, "user": "1000"},
        parameters={"url": f"db://me:{canary}@host", "day": "1"},
        secrets={"pw": canary},
        env={
            "url": f"db://me:{canary}@host",
            "SHOAL_PARAM_URL": f"db://me:{canary}@host",
            "day": "1",
            "SHOAL_SECRET_pw": canary,
        },
    ) as process:
        process.until("started")
        [one] = tasks.engine.containers()
        assert canary not in json.dumps(one.attrs)
        assert "day=1" in one.attrs["Config"]["Env"]
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert ended.log.count(canary) == 1  # that the script has shown: the agent masks it
    assert "writable" not in ended.log
    assert ended.outputs == {"url": f"db://me:{canary}@host", "day": "1"}
    assert "no variable, as secrets are in it, but in $SHOAL_PARAMETERS: url" in ended.log
    for file in ended.folder.rglob("*"):
        assert ended.folder.stat().st_mode & 0o077 == 0, file  # nobody else gets there


def test_mounts_are_those_that_the_worker_allows(tasks: Tasks, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    out.mkdir(mode=0o777)
    out.chmod(0o777)
    (data / "a").write_text("hello")
    (data / "link").symlink_to("/")
    settings = {"container_mounts": f"{data} {out}:rw"}

    def with_mounts(*mounts: dict[str, Any]) -> Any:
        script = "cat /in/a; touch /in/new 2>/dev/null && echo writable; touch /out/b; true"
        return tasks.ran(script, params={"mounts": list(mounts)}, settings=settings)

    read = {"source": str(data), "target": "/in"}
    ended = with_mounts(read, {"source": str(out), "target": "/out", "read_only": False})
    assert ended.code == 0, ended.log
    assert ended.log.endswith("hello")
    assert (out / "b").exists()
    for refused in (
        {**read, "source": "/etc"},
        {**read, "source": f"{data}/link"},
        {**read, "source": "/"},
        {**read, "read_only": False},
    ):
        ended = with_mounts(refused)
        assert (ended.code, ended.settled) == (65, True), ended.log
        assert "may" in ended.reason
        assert "setting container_mounts" in ended.reason
        assert "hello" not in ended.log


def test_resources_are_in_the_container(tasks: Tasks, tmp_path: Path) -> None:
    # They are there before the process begins, so the attempt's folder is made here.
    process = tasks.begun("cat /shoal/resources/etl/a.txt", before=lambda folder: _resource(folder))
    with process:
        ended = process.ended()
    assert ended.code == 0, ended.log
    assert ended.log.endswith("of the project")


def _resource(folder: Path) -> None:
    file = folder / "resources" / "etl" / "a.txt"
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_text("of the project")
    file.chmod(0o500)


@pytest.mark.parametrize(
    ("changes", "settings", "code", "said"),
    [
        ({"image": "localhost/nothing:1", "pull": "never"}, {}, 65, "has no image"),
        ({"image": "localhost/nothing:1"}, {}, 1, "could not pull localhost/nothing:1: "),
        ({"command": ["/no/such"]}, {}, 65, "could not be started"),
        ({"network": "bridge"}, {}, 65, "network 'bridge' is not allowed"),
        ({"network": "host"}, {}, 65, "network 'host' is not allowed"),
        ({}, {"docker_socket": "", "podman_socket": ""}, 65, "this worker has no "),
        ({}, {"docker_socket": "unix:///no/sock", "podman_socket": "unix:///no/sock"}, 1, "socket"),
    ],
)
def test_what_cannot_run(
    tasks: Tasks, changes: dict[str, Any], settings: dict[str, str], code: int, said: str
) -> None:
    ended = tasks.ran("echo never", params=changes, settings=settings)
    assert ended.code == code, ended.log
    assert said in ended.reason
    assert ended.settled
    assert "Traceback" not in ended.log
    assert not tasks.engine.containers()


@pytest.mark.parametrize("script", [POLITE, STUBBORN])
def test_killed_container_is_gone(tasks: Tasks, script: str) -> None:
    with tasks.begun(script) as process:
        process.until("started")
        process.signal(signal.SIGTERM)
        ended = process.ended()
    assert (ended.code, ended.settled) == (143, True), ended.log
    assert ("leaving" in ended.log) is (script == POLITE)
    assert not tasks.engine.containers()


def test_what_a_dead_process_has_left_is_settled(tasks: Tasks) -> None:
    with tasks.begun(STUBBORN) as process:
        process.until("started")
        process.signal(signal.SIGKILL)
        assert not process.ended().settled
    assert [one.status for one in tasks.engine.containers()] == ["running"]
    ended = tasks.ran(STUBBORN, settle=True)
    assert (ended.code, ended.settled) == (0, True), ended.log
    assert not tasks.engine.containers()


def test_no_two_attempts_run_at_once(tasks: Tasks) -> None:
    with tasks.begun(STUBBORN) as first:
        first.until("started")
        [one] = tasks.engine.containers()
        ended = tasks.ran("echo alone", attempt=2)
        assert ended.code == 0, ended.log
        assert f"ending container {one.short_id}, which an earlier attempt has left" in ended.log
        assert first.ended().code != 0
    assert not tasks.engine.containers()


def test_late_attempt_leaves_its_successors_container_alone(tasks: Tasks) -> None:
    with tasks.begun(POLITE, attempt=2) as second:
        second.until("started")
        ended = tasks.ran("echo never", attempt=1)
        assert ended.code == 1
        assert "a later attempt, number 2, has begun already" in ended.reason
        assert tasks.ran("", settle=True, attempt=1).settled
        assert [one.status for one in tasks.engine.containers()] == ["running"]
        second.signal(signal.SIGTERM)
        assert second.ended().settled


@pytest.mark.parametrize("seed", range(30))
def test_killed_at_any_moment_leaves_nothing(tasks: Tasks, seed: int) -> None:
    chance = random.Random(seed)
    script = chance.choice([POLITE, STUBBORN, "echo started; sleep 1"])
    number = chance.choice([signal.SIGTERM, signal.SIGKILL])
    with tasks.begun(script) as process:
        time.sleep(chance.uniform(0.0, 2.5))  # which moment it hits is what the seed chooses
        process.signal(number)
        ended = process.ended()
    if not ended.settled:
        assert number == signal.SIGKILL or ended.code == -signal.SIGTERM, ended.log
        settled = tasks.ran(script, settle=True)
        assert (settled.code, settled.settled) == (0, True), settled.log
    assert not tasks.engine.containers()
