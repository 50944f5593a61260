"""The guards of costs report what has doubled; the bench of a week finds a leak behind purges."""

from bench.counts.budget import over
from bench.guard import PIECES, STARTS, too_dear
from bench.week.samples import MIB, Sample, trends


def test_twice_the_counted_cost_is_noticed_and_named() -> None:
    known = {"WIDE": {"master": 2.0, "api": 0.0}}
    assert not over(known, {"WIDE": {"master": 2.9, "api": 0.1}})
    (said,) = over(known, {"WIDE": {"master": 4.0, "api": 0.0}})
    assert said.startswith("WIDE: 4.00 master per task, 2.00 in")
    assert over(known, {"WIDE": {"api": 0.2}}), "what cost nothing costs something"


def test_processor_time_is_too_dear_by_both_yardsticks_only() -> None:
    known = {STARTS: {"WIDE": {"master": 1.0}}, PIECES: {"WIDE": {"master": 8.0}}}
    for starts, pieces, said in ((1.0, 16.0, 0), (2.0, 8.0, 0), (2.0, 16.0, 2)):
        found = {STARTS: {"WIDE": {"master": starts}}, PIECES: {"WIDE": {"master": pieces}}}
        assert len(too_dear(known, found)) == said, found


def test_growth_is_seen_behind_what_swings() -> None:
    for leak, grows in ((0.0, False), (100.0, True)):
        rows = [10_000.0 + 2_000 * (n % 4) + leak * n for n in range(100)]
        samples = [Sample(5.0 * n, 1_000 * n, {"rows: event": row}) for n, row in enumerate(rows)]
        [one] = trends(samples, kept={"rows: event"})
        assert one.grows is grows, leak
    # A bound that moves along, such as that of a process that maps ever more, is no excuse.
    moving = [
        Sample(n, 1_000 * n, {"shared": (10 + n) * MIB}, {"shared": (10 + n) * MIB})
        for n in range(30)
    ]
    [one] = trends(moving)
    assert one.grows
