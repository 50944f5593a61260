"""Where it gets narrow first: found, explained, and how many slots would be enough."""

from shoal.insight.simulate.result import simulate
from tests.unit.insight.models import model, question, workflow


def test_nothing_is_narrow_where_nothing_waits() -> None:
    one = workflow("w", {"a": {}}, {"a": 10}, cron="0 0 * * * ?")
    assert simulate(model(one), question(5)).bottleneck is None


def test_the_first_time_that_a_task_waits_too_long_is_named_with_who_takes_the_slots() -> None:
    """Ten tasks of 100 s at 06:00 on two slots: the last ones wait 400 s."""
    many = workflow("many", {f"t{i}": {} for i in range(10)}, {f"t{i}": 100 for i in range(10)},
                    cron="0 0 6 * * ?")  # fmt: skip
    quiet = workflow("quiet", {"a": {}}, {"a": 10}, cron="0 0 * * * ?", priority="HIGH")
    found = simulate(model(many, quiet, slots=2), question(24)).bottleneck
    assert found is not None
    assert (found.kind, found.name, found.slots) == ("worker group", "default", 2)
    assert (found.since, found.until) == ("2026-03-02T06:00:00Z", "2026-03-02T06:06:50Z")
    assert found.longest_s == 410.0
    assert found.most_waiting == 9
    shares = {one.workflow: one.share for one in found.shares}
    assert shares["default/many"] > 0.97
    assert "all 2 slots were taken while up to 9 tasks waited, the longest 6m 50s" in found.why
    # All eleven start at once with eleven slots; waits of at most a minute need as many.
    assert (found.never_waits, found.enough, found.longest_with_enough_s) == (11, 10, 10.0)
    assert found.advice("1m") == (
        "10 slots would be enough for waits of at most 1m. With 11 slots no task of it would "
        "wait at all."
    )


def test_slots_that_are_enough_are_enough_and_one_fewer_is_not() -> None:
    busy = workflow("w", {f"t{i}": {} for i in range(7)}, {f"t{i}": [20, 90] for i in range(7)},
                    cron="0 */5 * * * ?")  # fmt: skip
    asked = question(6, limit_s=30.0)
    found = simulate(model(busy, slots=1), asked).bottleneck
    assert found is not None
    assert found.enough is not None
    longest = {
        slots: simulate(model(busy, slots=slots), asked).groups[0].waits.max_s
        for slots in (found.enough - 1, found.enough)
    }
    assert longest[found.enough] <= 30.0 < longest[found.enough - 1]


def test_a_longer_limit_is_reached_later_or_never() -> None:
    one = workflow("w", {f"t{i}": {} for i in range(3)}, {f"t{i}": 100 for i in range(3)},
                   cron="0 0 * * * ?")  # fmt: skip
    assert simulate(model(one, slots=1), question(2, limit_s=199)).bottleneck is not None
    assert simulate(model(one, slots=1), question(2, limit_s=200)).bottleneck is None


def test_a_concurrency_group_can_be_the_bottleneck() -> None:
    tasks = {f"t{i}": {"concurrency_group": "narrow"} for i in range(4)}
    one = workflow("w", tasks, dict.fromkeys(tasks, 100.0), cron="0 0 * * * ?")
    found = simulate(model(one, slots=9, concurrency={"default/narrow": 1}), question(2)).bottleneck
    assert found is not None
    assert (found.kind, found.name) == ("concurrency group", "default/narrow")
    assert (found.never_waits, found.enough) == (4, 4)
    assert "its only slot was taken while up to 3 tasks waited" in found.why


def test_a_group_without_workers_is_said() -> None:
    one = workflow("w", {"a": {"worker_group": "gpu"}}, {"a": 10}, cron="0 0 * * * ?")
    found = simulate(model(one), question(3))
    assert found.bottleneck is not None
    assert found.bottleneck.why == "the worker group gpu has no worker"
    assert found.bottleneck.never_waits == 1
    assert any("gpu has no slots: 3 tasks wait for ever" in text for text in found.left_out)
