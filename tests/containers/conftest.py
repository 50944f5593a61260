"""The engines that are started for the tests, and how a task is run at one."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.worker.types.container.kind import Container
from tests.containers.engines import BOX, Running, running
from tests.integration.worker.sql.kit import Ended, Process


@pytest.fixture(scope="session", params=["docker", "podman"])
def engine(request: pytest.FixtureRequest) -> Iterator[Running]:
    program = "dockerd" if request.param == "docker" else "podman"
    if os.geteuid() != 0 or shutil.which(program) is None:
        pytest.fail(f"needs root and {program}: run make test-containers")
    with running(request.param) as one:
        yield one


class Tasks:
    """Runs attempts at one engine, each in a folder of its own."""

    def __init__(self, engine: Running, folder: Path) -> None:
        self.engine, self._folder = engine, folder
        self._number = 0

    def begun(self, script: str, **more: Any) -> Process:
        """Begin an attempt whose container runs a script of ``sh``."""
        self._number += 1
        settings = {**self.engine.settings, **more.pop("settings", {})}
        params = {
            "engine": self.engine.name,
            "image": BOX,
            "command": ["sh", "-c", script],
            **more.pop("params", {}),
        }
        folder = self._folder / str(self._number)
        return Process(None, params, folder, kind=Container, settings=settings, **more)

    def ran(self, script: str, **more: Any) -> Ended:
        """Run one to its end."""
        with self.begun(script, **more) as process:
            return process.ended()


@pytest.fixture
def tasks(engine: Running, tmp_path: Path) -> Iterator[Tasks]:
    yield Tasks(engine, tmp_path)
    for left in engine.containers():
        left.remove(force=True)
