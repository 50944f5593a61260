"""A clock that was late is written down; one that was a little late is not."""

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


def test_the_thread_ends_with_its_block() -> None:
    with StallWatch(1000.0) as watch:
        assert watch._thread.is_alive()
    assert not watch._thread.is_alive()
    assert watch.records == []
