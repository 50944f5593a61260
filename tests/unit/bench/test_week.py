"""The bench of a week reports growth, and no excuse hides a leak."""

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
