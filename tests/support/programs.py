"""Programs that tests/provision.sh installs: a test that lacks one is skipped, in CI it fails."""

import os
from typing import NoReturn

import pytest


def lacking(reason: object) -> NoReturn:
    """Skip the test for want of a program; fail it where ``CI`` is set, which has them all."""
    if os.environ.get("CI"):
        pytest.fail(f"not provisioned (run tests/provision.sh): {reason}")
    pytest.skip(str(reason))
