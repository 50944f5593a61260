"""Which dates of a backfill wait for which others."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from shoal.core.backfill.upstream import Follower, Upstream, UpstreamNeed, needs_of
from shoal.core.definition.model import BackfillBase, WorkflowSpec
from shoal.core.definition.selection import Selection, SelectionMode


def spec(*tasks: dict[str, Any]) -> WorkflowSpec:
    return WorkflowSpec.model_validate({"project": "p", "name": "w", "tasks": list(tasks)})


def waiting(name: str, when: Any, **fields: Any) -> dict[str, Any]:
    return {"name": name, "type": "DEPENDENT", "params": {"when": when}, **fields}


def test_needs_are_the_items_of_every_dependent_task_each_once() -> None:
    found = needs_of(
        spec(
            waiting(
                "a",
                {
                    "all": [
                        {"workflow": "x", "date": "today"},
                        {"any": [{"workflow": "y", "project": "q", "date": "last1Days"}]},
                    ]
                },
            ),
            waiting("b", {"workflow": "x", "date": "today", "task": "t"}),
            waiting("off", {"workflow": "z", "date": "today"}, enabled=False),
            {"name": "c", "type": "SHELL", "params": {"when": {"workflow": "no"}}},
        )
    )
    assert found == (UpstreamNeed("p", "x", "today"), UpstreamNeed("q", "y", "last1Days"))


def test_a_task_that_is_not_chosen_needs_nothing() -> None:
    definition = spec(
        waiting("a", {"workflow": "x", "date": "today"}),
        {"name": "b", "type": "SHELL", "params": {}, "depends_on": ["a"]},
    )
    assert needs_of(definition, Selection(("b",))) == ()
    assert needs_of(definition, Selection(("b",), SelectionMode.UPSTREAM)) != ()


@dataclass(frozen=True)
class Run:
    position: int
    workflow_id: int
    logical_time: datetime


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, number, hour, tzinfo=UTC)


RUNS = [
    *(Run(number, 1, day(number)) for number in range(1, 6)),
    *(Run(10 + number, 2, day(number, 8)) for number in range(1, 6)),
]


def upstream_of(position: int, needs: tuple[tuple[int, str], ...], **fields: Any) -> set[int]:
    follower = Follower(needs, fields.pop("zone", "UTC"), **fields)
    upstream = Upstream(RUNS, {2: follower})
    return set(upstream.of(next(run for run in RUNS if run.position == position)))


def test_a_date_waits_for_those_in_its_intervals() -> None:
    assert upstream_of(13, ((1, "today"),)) == {3}
    assert upstream_of(13, ((1, "last2Days"),)) == {1, 2}
    assert upstream_of(11, ((1, "last2Days"),)) == set()  # those before the range are not ours
    assert upstream_of(13, ((1, "today"), (2, "last1Days"))) == {3, 12}
    assert upstream_of(3, ((1, "today"),)) == set()  # the other workflow waits for nothing


def test_a_date_never_waits_for_itself() -> None:
    assert upstream_of(13, ((2, "today"),)) == set()


def test_the_zone_says_which_day_it_is() -> None:
    # 08:00 UTC is 18:00 of the same day there; midnight UTC is 10:00.
    assert upstream_of(13, ((1, "today"),), zone="Australia/Brisbane") == {3}
    # 08:00 UTC is 22:00 of the day before; midnight UTC is 14:00 of the day before.
    assert upstream_of(13, ((1, "today"),), zone="Pacific/Honolulu") == {3}
    assert upstream_of(13, ((1, "last1Days"),), zone="Pacific/Honolulu") == {2}


def test_the_base_of_an_imported_workflow_is_a_day_later() -> None:
    assert upstream_of(13, ((1, "last1Days"),), base=BackfillBase.NEXT_DAY) == {3}


def test_an_unknown_date_value_means_the_same_day() -> None:
    assert upstream_of(13, ((1, "someday"),)) == {3}


def test_needs_outside_of_the_backfill_are_left_out() -> None:
    definition = spec(
        waiting("a", {"all": [{"workflow": "x"}, {"workflow": "y", "date": "last1Days"}]})
    )
    follower = Follower.of(definition, "UTC", {("p", "y"): 7})
    assert follower.needs == ((7, "last1Days"),)
