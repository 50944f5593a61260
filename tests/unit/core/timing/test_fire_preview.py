"""The preview says what clock changes and days left out do to a schedule."""

from datetime import UTC, date, datetime

import pytest

from shoal.core.schedule.fire_times import Timetable
from shoal.core.schedule.preview import preview
from shoal.core.timing.cron.expression import OnGap, OnOverlap, parse

GAP, OVERLAP = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)


def shown(table: Timetable, after: datetime, count: int) -> list[str]:
    return [
        " ".join([f"{one.moment:%d %H:%M%z}", *one.marks]) for one in preview(table, after, count)
    ]


@pytest.mark.parametrize(
    ("expression", "on_gap", "on_overlap", "after", "expected"),
    [
        ("30 2 * * *", None, None, GAP, ["29 03:00+0200 after the gap", "30 02:30+0200"]),
        ("30 2 * * *", "skip", None, GAP, ["30 02:30+0200", "31 02:30+0200"]),
        # A fire time of its own, which makes up for another one as well.
        ("0 2,3 * * *", None, None, GAP, ["29 03:00+0200 after the gap", "30 02:00+0200"]),
        ("0 3 * * *", None, None, GAP, ["29 03:00+0200", "30 03:00+0200"]),
        ("30 2 * * *", None, None, OVERLAP, ["25 02:30+0200 1st pass", "26 02:30+0100"]),
        ("30 2 * * *", None, "last", OVERLAP, ["25 02:30+0100 2nd pass", "26 02:30+0100"]),
        (
            "30 2 * * *",
            None,
            "both",
            OVERLAP,
            ["25 02:30+0200 1st pass", "25 02:30+0100 2nd pass"],
        ),
        ("0 3 * * *", None, "both", OVERLAP, ["25 03:00+0100", "26 03:00+0100"]),
    ],
)
def test_clock_changes_are_marked(
    expression: str,
    on_gap: OnGap | None,
    on_overlap: OnOverlap | None,
    after: datetime,
    expected: list[str],
) -> None:
    cron = parse(expression, "Europe/Berlin", on_gap=on_gap, on_overlap=on_overlap)
    assert shown(Timetable(cron), after, 2) == expected


def test_each_day_left_out_is_one_line() -> None:
    table = Timetable(
        parse("0 */12 * * *"),
        end=datetime(2026, 3, 4, tzinfo=UTC),
        excluded=frozenset({date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 9)}),
    )
    lines = preview(table, datetime(2026, 2, 28, 6, tzinfo=UTC), 10)
    assert [f"{one.moment:%d %H} {one.fires}" for one in lines] == [
        "28 12 True",
        "01 00 False",
        "02 00 False",
        "03 00 True",
        "03 12 True",
    ]


def test_schedule_without_fire_times_shows_nothing() -> None:
    assert preview(Timetable(parse("0 0 30 2 *")), GAP, 5) == []
