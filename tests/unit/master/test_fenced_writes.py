"""Whether a master is fenced for long, by the refusals of its writes."""

from shoal.master.membership.partitions import FencedWrites


def test_takeovers_of_different_partitions_are_no_long_fence() -> None:
    writes = FencedWrites()
    writes.note({1: 5}, 100.0)
    writes.note({2: 7}, 140.0)
    assert writes.since(141.0) is None
    writes.note({1: 6}, 150.0)  # acquired again meanwhile
    assert writes.since(151.0) is None


def test_an_epoch_that_stays_fenced_is_reported_until_it_is_over() -> None:
    writes = FencedWrites()
    for now_s in (100.0, 120.0, 140.0):
        writes.note({1: 5, 2: 7}, now_s)
    writes.note({2: 7}, 180.0)
    assert writes.since(181.0) is not None
    assert writes.since(241.0) is None
    writes.note({1: 5}, 242.0)
    assert writes.since(243.0) is None
