from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.worker.processes.launcher import Launcher
from tests.integration.worker.supervisor.attempt_site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def cgroup() -> Path | None:
    """Where attempts get control groups: nowhere, unless a module says otherwise."""
    return None


@pytest.fixture
async def launcher(cgroup: Path | None) -> AsyncIterator[Launcher]:
    async with Launcher(cgroup=cgroup) as launcher:
        yield launcher
