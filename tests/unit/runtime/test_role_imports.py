"""A role is ready soon: importing it is most of the processor time of its start.

Both sides are measured in the same run, so a slow or busy machine changes neither ratio much.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FRAMEWORK = "fastapi, sqlalchemy.ext.asyncio, grpc.aio"
# Processor time of the import of a role, in imports of the frameworks. Where Python keeps no
# bytecode, as in most test runs, it compiles every module of Shoal, which doubles the ratio.
MOST = {"api": 6.0, "master": 4.0, "alert": 4.0, "worker": 3.0}
TRIES = 2


def import_s(modules: str) -> float:
    """Return the processor time of a Python process that imports ``modules``, at least."""
    used = []
    for _ in range(TRIES):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import gc; gc.disable()\n"
                f"import {modules}\n"
                "import time; print(time.process_time())",
            ],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={name: text for name, text in os.environ.items() if not name.startswith("COV_")},
        )
        used.append(float(done.stdout))
    return min(used)


@pytest.fixture(scope="module")
def framework_s() -> float:
    return import_s(FRAMEWORK)


@pytest.mark.parametrize("role", sorted(MOST))
def test_import_of_a_role_takes_few_times_that_of_its_frameworks(
    role: str, framework_s: float
) -> None:
    assert import_s(f"shoal.{role}.main") < MOST[role] * framework_s
