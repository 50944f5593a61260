"""The guard of the processor time reports costs that have doubled by both yardsticks."""

import pytest

from bench.guard import PIECES, STARTS, table, too_dear

KNOWN = {STARTS: {"WIDE": {"master": 1.0}}, PIECES: {"WIDE": {"master": 8.0}}}


@pytest.mark.parametrize(("starts", "pieces"), [(1.0, 8.0), (2.0, 8.0), (1.0, 16.0)])
def test_what_is_dear_by_one_yardstick_only_is_another_make_of_processor(
    starts: float, pieces: float
) -> None:
    found = {STARTS: {"WIDE": {"master": starts}}, PIECES: {"WIDE": {"master": pieces}}}
    assert not too_dear(KNOWN, found)


def test_what_is_dear_by_both_is_named_with_both() -> None:
    found = {STARTS: {"WIDE": {"master": 2.0}}, PIECES: {"WIDE": {"master": 16.0}}}
    assert [said.partition(" per task")[0] for said in too_dear(KNOWN, found)] == [
        f"WIDE: 2.00 {STARTS} of master",
        f"WIDE: 16.00 {PIECES} of master",
    ]
    assert f"| WIDE, master | {PIECES} | 8.00 | 16.00 | 12.90 |" in table(KNOWN, found)
