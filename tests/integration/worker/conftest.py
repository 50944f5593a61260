from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shoal.worker.execution.launching import Launcher
from tests.integration.worker.attempt_site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
async def launcher() -> AsyncIterator[Launcher]:
    async with Launcher() as launcher:
        yield launcher
