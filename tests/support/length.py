"""How far random searches of the tests go: a fixed share of their cases, or all of them.

``SHOAL_TESTS_LONG=1`` makes them long. The share is the same in each run: which cases it has
depends on nothing but the code.
"""

import os

VARIABLE = "SHOAL_TESTS_LONG"
IS_LONG = os.environ.get(VARIABLE, "0") not in ("", "0")


def share(whole: int, short: int) -> int:
    """Return how many cases to try: all, or those of a short run."""
    return whole if IS_LONG else short
