"""A stall of the machine excuses losses; a short delay does not."""

from tests.chaos.stalls import StallWatch


def test_a_long_stall_is_a_record() -> None:
    watch = StallWatch(4.0)
    watch.note(100.0, 102.5)
    [record] = watch.records
    assert (record.name, record.began_s, record.healed_s) == ("machine-stall", 100.0, 102.5)
    assert record.costs_workers


def test_a_short_delay_is_none() -> None:
    watch = StallWatch(4.0)
    watch.note(100.0, 100.9)
    assert watch.records == []
