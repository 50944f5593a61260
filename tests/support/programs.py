"""Programs that tests/provision.sh installs: a test that lacks one is skipped, in CI it fails."""

import os
import shutil
from typing import NoReturn

import pytest


def lacking(reason: object) -> NoReturn:
    """Skip the test for want of a program; fail it where ``CI`` is set, which has them all."""
    if os.environ.get("CI"):
        pytest.fail(str(reason))
    pytest.skip(str(reason))


def program(name: str) -> str:
    """Return the path of a program; without it skip the test, in CI fail it."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    return path or lacking(f"there is no {name}: run tests/provision.sh")
