"""Settings of a worker, and the environment that it builds for its tasks."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from shoal.runtime.settings import InvalidSettings, load_settings
from shoal.worker.processes.environment import Setup
from shoal.worker.processes.variables import (
    LONGEST_VALUE,
    MOST_BYTES,
    base_environment,
    parameter_variables,
)
from shoal.worker.settings import WorkerSettings


def test_defaults_fit_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "ünïcode host.example")
    settings = WorkerSettings()
    assert settings.name == "n-code-host.example"
    assert settings.slots >= 2
    assert settings.group == "default"


def test_settings_come_from_file_and_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "shoal.toml").write_text('[worker]\ngroup = "gpu"\nslots = 3\n')
    monkeypatch.setenv("SHOAL_WORKER_SLOTS", "5")
    monkeypatch.setenv("SHOAL_WORKER_ENV_PASS", "HTTP_PROXY, NO_PROXY  CUDA_HOME")
    settings = load_settings(WorkerSettings, "worker", tmp_path)
    assert (settings.group, settings.slots) == ("gpu", 5)
    assert settings.env_pass == ("HTTP_PROXY", "NO_PROXY", "CUDA_HOME")


@pytest.mark.parametrize(
    "line",
    ["slots = 0", 'group = "a/b"', 'name = "../x"', "port = 70000", "typo = 1", "drain_s = -1"],
)
def test_bad_settings_are_refused_by_name(line: str, tmp_path: Path) -> None:
    (tmp_path / "shoal.toml").write_text(f"[worker]\n{line}\n")
    with pytest.raises(InvalidSettings, match=line.split()[0]):
        load_settings(WorkerSettings, "worker", tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        'http_allow = "localhost"',
        'http_deny = "10.0.0.1/8"',
        'http_proxy = "socks5://proxy:1080"',
        'http_proxy = "http://:3128"',
        'http_proxy = "http://proxy:port"',
        'wait_roots = "data"',
        'wait_roots = "/data https://example.org"',
        'docker_socket = "tcp://10.0.0.1:2375"',
        'podman_socket = "/run/podman.sock"',
        'container_networks = "none host"',
        'container_networks = "container:abc"',
        'container_mounts = "data"',
        'container_mounts = "/"',
        'container_mounts = "/data/../etc"',
        'container_mounts = "/data:ro"',
    ],
)
def test_settings_of_task_types_that_mean_nothing_are_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "shoal.toml").write_text(f"[worker]\n{line}\n")
    with pytest.raises(InvalidSettings, match=line.split()[0]):
        load_settings(WorkerSettings, "worker", tmp_path)


def test_task_types_are_told_their_settings_and_no_others() -> None:
    settings = WorkerSettings(
        http_allow="127.0.0.0/8, ::1",
        http_no_proxy=".a,b",
        http_proxy="http://u:p@proxy:3128",
        docker_socket="unix:///run/docker.sock",
        container_networks="bridge, none",
        container_mounts="/data/in, /data/out:rw",
        kubernetes_namespaces="etl,other",
        kill_grace_s=3,
    )
    assert settings.for_task_types() == {
        "http_allow": "127.0.0.0/8 ::1",
        "http_deny": "",
        "http_proxy": "http://u:p@proxy:3128",
        "http_no_proxy": ".a b",
        "wait_roots": "",
        "docker_socket": "unix:///run/docker.sock",
        "podman_socket": "",
        "container_networks": "bridge none",
        "container_mounts": "/data/in /data/out:rw",
        "kubernetes_config": "",
        "kubernetes_context": "",
        "kubernetes_namespaces": "etl other",
        "kubernetes_service_accounts": "",
        "kill_grace_s": "3.0",
    }
    assert "u:p" not in repr(settings)


def test_shoals_own_variables_cannot_be_passed_on() -> None:
    with pytest.raises(ValidationError, match="SHOAL_DATABASE_URL is Shoal's own"):
        WorkerSettings(env_pass=("SHOAL_DATABASE_URL",))


def test_folders_must_differ(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="must be different folders"):
        WorkerSettings(work_dir=tmp_path, spool_dir=tmp_path)


def test_only_the_allow_list_is_inherited(tmp_path: Path) -> None:
    worker = {"PATH": "/bin", "HOME": "/h", "SHOAL_DATABASE_URL": "x", "SECRET": "y", "OPEN": "z"}
    env = base_environment(worker, tmp_path, ("OPEN", "ABSENT"))
    assert env == {
        "PATH": "/bin",
        "HOME": "/h",
        "OPEN": "z",
        "LANG": "C.UTF-8",
        "TMPDIR": str(tmp_path),
        "PWD": str(tmp_path),
    }


@pytest.mark.parametrize(
    "name",
    ["PATH", "LD_PRELOAD", "bash_env", "PYTHONPATH", "JAVA_TOOL_OPTIONS", "SPARK_HOME", "PS4"],
)
def test_no_parameter_steers_the_programs_that_see_it(name: str) -> None:
    assert parameter_variables({name: "x"}) == {f"SHOAL_PARAM_{name.upper()}": "x"}


def test_no_parameter_has_the_name_of_a_variable_of_the_setup(tmp_path: Path) -> None:
    """The shell that sources a setup has the parameters in its environment."""
    text = " ".join(Setup("env@1", tmp_path, "bash").argv([]))
    used = set(re.findall(r"\b([A-Za-z_]\w*)=|\$\{?([A-Za-z_]\w*)", text))
    names = {name for pair in used for name in pair if name}
    assert "shoal_program" in names
    for name in names:
        assert set(parameter_variables({name: "x"})) == {f"SHOAL_PARAM_{name.upper()}"}


def test_values_at_the_limits() -> None:
    fits, too_long = "é" * (LONGEST_VALUE // 2), "é" * (LONGEST_VALUE // 2) + "x"
    assert set(parameter_variables({"a": fits, "b": too_long, "c": "\0"})) == {"a", "SHOAL_PARAM_A"}


def test_small_values_go_before_large_ones_when_room_is_short() -> None:
    large = {f"large{n}": "x" * LONGEST_VALUE for n in range(20)}
    variables = parameter_variables({**large, "small": "1"})
    assert variables["small"] == "1"
    assert "large0" in variables
    assert "large19" not in variables
    assert sum(len(name) + len(value) for name, value in variables.items()) <= MOST_BYTES
