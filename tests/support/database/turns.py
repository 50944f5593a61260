"""Which of the tests that run on SQLite and on PostgreSQL one run has.

``SHOAL_TESTS_DATABASES`` names the turn. Without it each of these tests runs on both databases.
"""

import os
from enum import StrEnum

VARIABLE = "SHOAL_TESTS_DATABASES"


class Turn(StrEnum):
    """Values of the variable. Both turns together run each test as often as one run without it."""

    FIRST = "first"  # all tests, but those on both databases on PostgreSQL alone
    SECOND = "second"  # only the tests on both databases, on SQLite


def current_turn() -> Turn | None:
    """Return the turn that the environment names; None means both."""
    given = os.environ.get(VARIABLE)
    return Turn(given) if given else None
