"""Which dates a backfill has, what it leaves out, what it takes along."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.backfill.plan import (
    BackfillPlan,
    BackfillTarget,
    Past,
    dates_downstream,
    dates_of,
    fires_at,
    plan,
)
from shoal.core.backfill.request import MAX_RUNS, BackfillRefused, BackfillRequest
from shoal.core.definition.model import WorkflowSpec
from shoal.core.schedule.fire_times import Timetable
from shoal.core.timing.cron import expression as cron

JANUARY = {"from": "2026-01-01", "to": "2026-01-05"}


def target(
    name: str = "w",
    *crons: str,
    zone: str = "UTC",
    number: int = 1,
    depth: int = 0,
    when: Any = None,
    **fields: Any,
) -> BackfillTarget:
    """A workflow; ``when``: what its DEPENDENT task waits for."""
    task: dict[str, Any] = {"name": "a", "type": "SHELL", "params": {"script": "true"}}
    if when is not None:
        task = {"name": "a", "type": "DEPENDENT", "params": {"when": when}}
    spec = WorkflowSpec.model_validate({"name": name, "timezone": zone, "tasks": [task], **fields})
    timetables = tuple(Timetable(cron.parse(one, zone)) for one in crons)
    return BackfillTarget(number, spec, timetables, depth)


def request(**fields: Any) -> BackfillRequest:
    return BackfillRequest.model_validate({"workflow": "w", **fields})


def written(dates: Sequence[datetime]) -> list[str]:
    return [f"{moment:%m-%d %H:%M}" for moment in dates]


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-{text}").replace(tzinfo=UTC)


# -- dates -----------------------------------------------------------------------------------


def test_a_range_by_schedule_has_its_fire_times_both_ends_included() -> None:
    found = dates_of(request(**JANUARY), target("w", "0 0 6 * * ?"))
    assert written(found) == [f"01-0{day} 06:00" for day in range(1, 6)]
    exact = request(**{"from": "2026-01-01T06:00", "to": "2026-01-02T06:00"})
    assert written(dates_of(exact, target("w", "0 0 6 * * ?"))) == ["01-01 06:00", "01-02 06:00"]


def test_several_schedules_are_merged_and_each_time_counts_once() -> None:
    found = dates_of(
        request(**{"from": "2026-01-01", "to": "2026-01-01"}),
        target("w", "0 0 6,12 * * ?", "0 0 12,18 * * ?"),
    )
    assert written(found) == ["01-01 06:00", "01-01 12:00", "01-01 18:00"]


def test_without_a_schedule_or_by_day_it_is_the_midnights_of_the_zone() -> None:
    berlin = target(zone="Europe/Berlin")
    ends = {"from": "2026-03-28", "to": "2026-03-30"}
    expected = ["03-27 23:00", "03-28 23:00", "03-29 22:00"]  # the clock goes forward on the 29th
    assert written(dates_of(request(**ends), berlin)) == expected
    scheduled = target("w", "0 0 6 * * ?", zone="Europe/Berlin")
    assert written(dates_of(request(**ends, by="day"), scheduled)) == expected


def test_a_listed_date_counts_once_and_in_order() -> None:
    found = dates_of(
        request(dates=["2026-01-03", "2026-01-01T06:30", "2026-01-03T01:00+01:00"]), target()
    )
    assert written(found) == ["01-01 06:30", "01-03 00:00"]


def test_a_range_with_offsets_does_not_care_for_the_zone() -> None:
    ends = {"from": "2026-01-01T00:00Z", "to": "2026-01-02T00:00Z"}
    tokyo = target("w", "0 0 9 * * ?", zone="Asia/Tokyo")
    assert written(dates_of(request(**ends), tokyo)) == ["01-01 00:00", "01-02 00:00"]


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"from": "2026-01-02", "to": "2026-01-01"}, "to", "before"),
        ({"from": "2026-01-01T01:00", "to": "2026-01-01T02:00"}, "from", "no fire time"),
        ({"from": "2026-01-01T01:00", "to": "2026-01-01T02:00", "by": "day"}, "from", "midnight"),
        ({"from": "2000-01-01", "to": "2199-01-01"}, "to", "hundred years"),
        ({"from": "1990-01-01", "to": "2026-01-01", "by": "day"}, "to", "10,000"),
        ({"from": "2026-01-01", "to": "9999-12-31"}, "to", "9999"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(
    fields: dict[str, str], field: str, words: str
) -> None:
    with pytest.raises(BackfillRefused, match=words) as caught:
        dates_of(request(**fields), target("w", "0 0 6 * * ?"))
    assert caught.value.field == field


def test_many_fire_times_are_refused_without_counting_them_all() -> None:
    with pytest.raises(BackfillRefused, match="10,000"):
        dates_of(
            request(**{"from": "2026-01-01", "to": "2060-01-01"}),
            target("w", "* * * * * ?", "* * * * * ?"),
        )


def test_by_schedule_without_a_schedule_is_refused() -> None:
    with pytest.raises(BackfillRefused, match="no schedule that is enabled"):
        dates_of(request(**JANUARY, by="schedule"), target())


def test_a_fire_time_is_known_to_be_one() -> None:
    timetable = Timetable(
        cron.parse("0 0 6 * * ?", "Europe/Berlin"), excluded=frozenset({date(2026, 1, 2)})
    )
    assert fires_at(timetable, at("01-01 05:00"))
    assert not fires_at(timetable, at("01-01 06:00"))
    assert not fires_at(timetable, at("01-02 05:00"))


@given(
    start=st.dates(date(2020, 1, 1), date(2030, 1, 1)),
    days=st.integers(0, 400),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Pacific/Apia"]),
)
@settings(deadline=None)
def test_by_day_each_day_of_the_range_has_one_date(start: date, days: int, zone: str) -> None:
    end = start + timedelta(days=days)
    found = dates_of(
        request(**{"from": start.isoformat(), "to": end.isoformat(), "by": "day"}),
        target(zone=zone),
    )
    assert found == sorted(set(found))
    assert len(found) == days + 1


# -- what is left out ------------------------------------------------------------------------


def planned(
    asked: BackfillRequest,
    targets: Sequence[BackfillTarget],
    history: dict[tuple[int, datetime], Past] | None = None,
) -> BackfillPlan:
    """The plan of a workflow and of those downstream, as the parts make it together."""
    dates = {targets[0].workflow_id: dates_of(asked, targets[0])}
    for other in targets[1:]:
        dates[other.workflow_id] = dates_downstream(
            asked, targets[0], dates[targets[0].workflow_id], other
        )
    return plan(asked, targets, dates, history or {})


def lines(found: BackfillPlan) -> list[str]:
    return [f"{run.workflow} {run.logical_time:%m-%d}" for run in found.runs if not run.skipped]


HISTORY = {
    (1, at("01-02 00:00")): Past.SUCCEEDED,
    (1, at("01-03 00:00")): Past.FAILED,
    (1, at("01-04 00:00")): Past.RUNNING,
}


@pytest.mark.parametrize(
    ("fields", "days"),
    [
        ({}, [1, 5]),
        ({"reprocess": "failed"}, [1, 3, 5]),
        ({"reprocess": "all"}, [1, 2, 3, 4, 5]),
        ({"only": "missing"}, [1, 5]),
        ({"only": "failed"}, [3]),
        ({"reprocess": "failed", "order": "descending"}, [5, 3, 1]),
    ],
)
def test_what_ran_before_runs_again_only_if_asked_for(
    fields: dict[str, str], days: list[int]
) -> None:
    found = planned(request(**JANUARY, **fields), [target()], HISTORY)
    assert lines(found) == [f"w 01-0{day}" for day in days]
    assert found.to_run == len(days)
    assert len(found.runs) == 5
    assert [run.position for run in found.runs] == list(range(5))


def test_what_is_left_out_says_why() -> None:
    found = planned(request(**JANUARY), [target()], HISTORY)
    assert [run.skipped for run in found.runs] == [
        None,
        "it has succeeded before",
        "it has failed before",
        "another run of it has not ended",
        None,
    ]


def test_a_plan_without_work_is_refused() -> None:
    asked = request(dates=["2026-01-02"])
    with pytest.raises(BackfillRefused, match=r"nothing to run: 1 x it has succeeded.*reprocess"):
        planned(asked, [target()], HISTORY).require_work()
    planned(request(**JANUARY), [target()], HISTORY).require_work()


# -- downstream ------------------------------------------------------------------------------

SAME_DAY = {"workflow": "w", "date": "today"}


def test_a_workflow_downstream_runs_on_the_same_days_behind_what_it_needs() -> None:
    report = target("report", "0 0 8,20 * * ?", number=2, depth=1, when=SAME_DAY)
    found = planned(
        request(dates=["2026-01-01", "2026-01-03"], downstream="all"), [target(), report]
    )
    assert lines(found) == [
        "w 01-01",
        "report 01-01",
        "report 01-01",
        "w 01-03",
        "report 01-03",
        "report 01-03",
    ]
    assert f"{found.runs[1].logical_time:%H}" == "08"


def test_by_day_a_workflow_downstream_runs_at_midnight_as_well() -> None:
    report = target("report", "0 0 8 * * ?", number=2, depth=1, when=SAME_DAY)
    asked = request(**JANUARY, by="day", downstream="direct")
    assert {run.logical_time.hour for run in planned(asked, [target(), report]).runs} == {0}


def test_a_date_downstream_runs_again_if_what_it_needs_does() -> None:
    report = target("report", number=2, depth=1, when=SAME_DAY)
    history = {
        (1, at("01-02 00:00")): Past.SUCCEEDED,
        (2, at("01-01 00:00")): Past.SUCCEEDED,  # before its upstream ever ran
        (2, at("01-02 00:00")): Past.SUCCEEDED,
    }
    asked = request(dates=["2026-01-01", "2026-01-02"], downstream="all")
    found = planned(asked, [target(), report], history)
    assert lines(found) == ["w 01-01", "report 01-01"]


def test_a_date_downstream_of_one_that_stays_failed_is_left_out_and_says_so() -> None:
    report = target("report", number=2, depth=1, when=SAME_DAY)
    end = target("end", number=3, depth=2, when={"all": [{"workflow": "report", "date": "today"}]})
    history = {(1, at("01-01 00:00")): Past.FAILED}
    asked = request(dates=["2026-01-01", "2026-01-02"], downstream="all")
    found = planned(asked, [target(), report, end], history)
    assert lines(found) == ["w 01-02", "report 01-02", "end 01-02"]
    reasons = [run.skipped for run in found.runs if run.logical_time == at("01-01 00:00")]
    assert reasons == [
        "it has failed before",
        *["a run that it depends on is left out, and has not succeeded"] * 2,
    ]


def test_too_many_runs_with_those_downstream_are_refused() -> None:
    others = [target(f"r{n}", number=n, depth=1, when=SAME_DAY) for n in range(2, 5)]
    asked = request(**{"from": "2010-01-01", "to": "2026-01-01"}, downstream="all")
    with pytest.raises(BackfillRefused, match=f"more than {MAX_RUNS:,}"):
        planned(asked, [target(), *others])


_PASTS = st.sampled_from(list(Past))


@given(
    pasts=st.lists(st.tuples(_PASTS, _PASTS, _PASTS), min_size=1, max_size=12),
    reprocess=st.sampled_from(["none", "failed", "all"]),
    order=st.sampled_from(["ascending", "descending"]),
    value=st.sampled_from(["today", "last1Days", "last2Days", "currentHour"]),
)
@settings(deadline=None)
def test_a_plan_holds_each_date_once_in_order_and_leaves_no_hole(
    pasts: list[tuple[Past, Past, Past]], reprocess: str, order: str, value: str
) -> None:
    needs = [{"workflow": "w", "date": value}, {"workflow": "end", "date": "last1Days"}]
    targets = [
        target(),
        target("report", number=2, depth=1, when={"any": needs}),  # report and end: a circle
        target("end", number=3, depth=2, when={"workflow": "report", "date": "today"}),
    ]
    days = [date(2026, 1, 1) + timedelta(days=n) for n in range(len(pasts))]
    midnights = [datetime(d.year, d.month, d.day, tzinfo=UTC) for d in days]
    history = {
        (number, midnight): past
        for midnight, three in zip(midnights, pasts, strict=True)
        for number, past in enumerate(three, 1)
    }
    asked = request(
        dates=[day.isoformat() for day in days],
        reprocess=reprocess,
        order=order,
        downstream="all",
    )
    found = planned(asked, targets, history)
    assert len({(run.workflow_id, run.logical_time) for run in found.runs}) == 3 * len(days)
    times = [run.logical_time for run in found.runs]
    assert times == sorted(times, reverse=order == "descending")
    for run in found.runs:
        past = history[run.workflow_id, run.logical_time]
        again = {"none": (), "failed": (Past.FAILED,), "all": tuple(Past)}[reprocess]
        wanted = past is Past.NEVER or past in again
        if run.workflow_id == 1:
            assert (run.skipped is None) is wanted
        elif run.skipped is None:
            # Nothing runs behind what is left out without a success.
            day = run.logical_time - timedelta(days=1)
            if (1, day) in history and value == "last1Days" and run.workflow_id == 2:
                one = next(r for r in found.runs if (r.workflow_id, r.logical_time) == (1, day))
                assert one.skipped is None or history[1, day] is Past.SUCCEEDED
        else:
            assert not wanted or "depends on" in run.skipped
