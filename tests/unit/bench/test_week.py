"""Whether something grows, by what was sampled."""

from bench.week.samples import MIB, Sample, markdown, trends, verdict


def samples(*levels: float, name: str = "memory: master") -> list[Sample]:
    return [Sample(5.0 * n, 1_000 * n, {name: level}) for n, level in enumerate(levels)]


def test_what_stays_is_flat_though_it_swings() -> None:
    [one] = trends(samples(*(100 * MIB + (n % 3) * MIB for n in range(30))))
    assert one.is_flat
    assert verdict(one) == "flat"


def test_what_gains_with_every_run_grows() -> None:
    [one] = trends(samples(*((100 + n) * MIB for n in range(30))))
    assert not one.is_flat
    assert round(one.per_run) == round(MIB / 1_000)
    assert (round(one.first / MIB), round(one.last / MIB)) == (100, 129)
    assert "**grows**" in markdown([one], samples(1, 2))


def filling(name: str, bound: float | None, *levels: float) -> list[Sample]:
    bounds = {} if bound is None else {name: bound}
    return [Sample(5.0 * n, 1_000 * n, {name: level}, bounds) for n, level in enumerate(levels)]


def test_a_segment_whose_pages_are_touched_one_after_the_other_does_not_grow() -> None:
    levels = [(10 + n) * MIB for n in range(30)]
    [one] = trends(filling("shared: PostgreSQL", 40 * MIB, *levels))
    assert not one.is_flat
    assert not one.grows
    assert verdict(one) == "at most 40.0 MiB"


def test_what_exceeds_the_bound_that_it_had_at_first_grows() -> None:
    name = "shared: PostgreSQL"
    levels = [(10 + n) * MIB for n in range(30)]
    [one] = trends(filling(name, 30 * MIB, *levels))
    assert one.grows
    # A bound that moves along, such as that of a process that maps ever more, is none.
    moving = [Sample(n, 1_000 * n, {name: level}, {name: level}) for n, level in enumerate(levels)]
    [one] = trends(moving)
    assert one.grows
    assert verdict(one) == "**grows**"


def test_private_memory_has_no_bound_that_excuses_it() -> None:
    [one] = trends(filling("memory: PostgreSQL", None, *((10 + n) * MIB for n in range(30))))
    assert one.grows


def test_rows_are_measured_by_their_number() -> None:
    [few] = trends(samples(*(float(n) for n in range(30)), name="rows: event"))
    assert few.is_flat
    [many] = trends(samples(*(1_000.0 * n for n in range(30)), name="rows: event"))
    assert not many.is_flat


def test_what_the_server_cleans_hourly_is_not_judged() -> None:
    [one] = trends(samples(*(50.0 * MIB * n for n in range(9)), name="disk: ZooKeeper"))
    assert verdict(one) == "cleaned hourly"


def kept_for(seconds: float, *rates: int) -> list[Sample]:
    """Ten samples a rate, of rows that are kept for so long."""
    samples: list[Sample] = []
    runs = 0
    for rate in rates:
        for _ in range(10):
            runs += 5 * rate
            samples.append(Sample(5.0 * len(samples), runs, {"rows: event": seconds * rate}))
    return samples


def test_rows_that_follow_the_rate_of_runs_do_not_grow() -> None:
    samples = kept_for(20.0, 100, 250)
    [as_found] = trends(samples)
    assert as_found.grows
    [at_even_rate] = trends(samples, kept={"rows: event"})
    assert not at_even_rate.grows


def test_rows_that_are_kept_ever_longer_grow_at_an_even_rate() -> None:
    samples = [Sample(5.0 * n, 500 * n, {"rows: event": 100.0 * (20 + n)}) for n in range(30)]
    [one] = trends(samples, kept={"rows: event"})
    assert one.grows


def test_rows_that_swing_with_each_purge_do_not_grow_and_a_leak_behind_that_is_seen() -> None:
    def sampled(leak: float) -> list[Sample]:
        return [
            Sample(5.0 * n, 1_000 * n, {"rows: event": 10_000.0 + 2_000 * (n % 4) + leak * n})
            for n in range(100)
        ]

    [swinging] = trends(sampled(0.0), kept={"rows: event"})
    assert not swinging.grows
    [leaking] = trends(sampled(100.0), kept={"rows: event"})
    assert leaking.grows
