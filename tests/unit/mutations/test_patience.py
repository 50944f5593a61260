"""The deadline of a killer leaves a margin over the time that it takes without a mutation.

With a deadline that is too short a killer fails by the clock, and the mutation passes for noticed.
"""

import pytest

from tests.mutations.patience import LADDER, MARGIN, longer

FIRST, SECOND, THIRD, LAST = LADDER


@pytest.mark.parametrize(
    ("deadline_s", "took_s", "next_s"),
    [
        (FIRST, FIRST / MARGIN, None),
        (FIRST, FIRST / MARGIN + 0.01, SECOND),
        (FIRST, SECOND / MARGIN + 0.01, THIRD),
        (SECOND, LAST, LAST),
        (FIRST, None, SECOND),  # it did not pass
        (LAST, None, None),
    ],
)
def test_next_deadline(deadline_s: float, took_s: float | None, next_s: float | None) -> None:
    assert longer(deadline_s, took_s) == next_s
