"""A real cluster, and the ``shoal`` program in this process."""

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from shoal.client.cli import run
from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.support.waiting import STEADY_SESSION_S

# The cluster's own threads log in this process, and would do so between the lines of a command.
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))

HELLO = Path(__file__).parents[3] / "examples" / "hello.py"


@dataclass
class Ended:
    """How a command line ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Shoal = Callable[..., Ended]


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One master and one worker, in a folder with a space in its name."""
    folder = tmp_path_factory.mktemp("command line")
    mounted = folder / "mounted"  # secrets of each project
    mounted.mkdir()
    (folder / "shoal.toml").write_text(
        f"[cluster]\nsession_timeout_s = {STEADY_SESSION_S}\n"
        f'[cluster.secret_stores.mounted]\nkind = "files"\nfolder = "{mounted}"\n'
        '[alert]\nhttp_allow = "127.0.0.0/8"\n'
    )
    with LocalCluster(folder, masters=1, workers=1, slots=4, api_port=free_port()) as running:
        yield running


@pytest.fixture
def shoal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Shoal:
    """Run a command line in this process, in an empty folder."""
    for name in ("SHOAL_DATA", "SHOAL_URL", "SHOAL_TOKEN", "SHOAL_CA", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Ended:
        capfd.readouterr()
        status = run(arguments)
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return Ended(status, captured.out, captured.err)

    return call


@pytest.fixture
def here(shoal: Shoal, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Shoal:
    """The same, with the cluster's data folder as the one to use."""
    monkeypatch.setenv("SHOAL_DATA", str(cluster.data))
    return shoal


def type_in(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Let this be the standard input of the next command, which is not a terminal."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def workflow(name: str, script: str, *more: str) -> None:
    """Write a definition with one task into the current folder."""
    lines = [f"name: {name}", *more, "tasks:", "  - name: only", "    type: SHELL"]
    lines += ["    params:", "      script: |", *(f"        {x}" for x in script.splitlines())]
    Path(f"{name}.yaml").write_text("\n".join(lines) + "\n")
