"""Date expressions: formats, and arithmetic that agrees with the calendar of the zone."""

import calendar
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.macros.placeholders import InvalidMacro, check
from tests.unit.core.decide.rendering import BERLIN, render


def at(text: str, zone: str = "Europe/Berlin") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${system.biz.date}", "20260731"),
        ("${system.biz.curdate}", "20260801"),
        ("${system.datetime}", "20260801102030"),
        # Formats.
        ("$[yyyyMMddHHmmss]", "20260801102030"),
        ("$[yyyyMMdd]", "20260801"),
        ("$[HHmmss]", "102030"),
        ("$[yyyy-MM-dd]", "2026-08-01"),
        ("$[yyyy-MM-dd/HH:mm:ss]", "2026-08-01/10:20:30"),
        ("$[yyyy-MM-dd HH:mm:ss.SSS]", "2026-08-01 10:20:30.045"),
        ("$[y yy M MM MMM MMMM d dd]", "2026 26 8 08 Aug August 1 01"),
        ("$[H:m:s S SSSSSS SSSSSSSSS]", "10:20:30 0 045600 045600000"),
        ("$[E EEE EEEE]", "Sat Sat Saturday"),
        ("$[yyyy'-01-'dd]", "2026-01-01"),
        ("$['it''s 'dd']']", "it's 01]"),
        ("$[dd'']", "01'"),
        ("$[yyyy''MM]", "2026'08"),
        ("$[yyyy年MM月dd日]", "2026年08月01日"),
        ("$[yyyy-MM-dd 00:00:00]", "2026-08-01 00:00:00"),
        ("$[yyyy(MM)]", "2026(08)"),
        # Days and weeks.
        ("$[yyyyMMdd+1]", "20260802"),
        ("$[yyyyMMdd-1]", "20260731"),
        ("$[yyyyMMdd+7*2]", "20260815"),
        ("$[yyyyMMdd-7*2]", "20260718"),
        ("$[yyyy-MM-dd-1]", "2026-07-31"),
        ("$[yyyy-MM-dd 00:00:00-1]", "2026-07-31 00:00:00"),
        ("$[yyyy-MM-'01'-1]", "2026-07-01"),
        ("$[yyyyMMdd - 1]", "20260731"),
        # Ordinary arithmetic.
        ("$[yyyyMMdd-1+2]", "20260802"),
        ("$[yyyyMMdd-1-2]", "20260729"),
        ("$[yyyyMMdd+2*(1+2)]", "20260807"),
        ("$[yyyyMMdd+-1]", "20260731"),
        ("$[yyyyMMdd--1]", "20260802"),
        ("$[yyyyMMdd+10-2*3]", "20260805"),
        # Hours, minutes, seconds.
        ("$[HHmmss+2/24]", "122030"),
        ("$[HHmmss-2/24]", "082030"),
        ("$[HHmmss+15/24/60]", "103530"),
        ("$[HHmmss-15/24/60]", "100530"),
        ("$[HHmmss+45/24/60/60]", "102115"),
        ("$[HHmmss-45/24/60/60]", "101945"),
        ("$[yyyyMMddHHmmss+1-2/24]", "20260802082030"),
        ("$[HHmmss+(1/24)]", "112030"),
        ("$[HHmmss+1/7]", "134612"),
        ("$[HHmmss-1/7]", "065448"),
        # Months.
        ("$[add_months(yyyyMMdd,1)]", "20260901"),
        ("$[add_months(yyyyMMdd,-1)]", "20260701"),
        ("$[add_months(yyyyMMdd,12*2)]", "20280801"),
        ("$[add_months(yyyyMMdd,-12*2)]", "20240801"),
        ("$[add_months(yyyyMMdd,-1+2)]", "20260901"),
        ("$[add_months(yyyyMMdd,7/2)]", "20261101"),
        ("$[add_months( yyyy-MM-dd , -8 )]", "2025-12-01"),
        # First and last days, moved by days …
        ("$[month_begin(yyyyMMdd,0)]", "20260801"),
        ("$[month_begin(yyyyMMdd,-1)]", "20260731"),
        ("$[month_end(yyyyMMdd,0)]", "20260831"),
        ("$[month_end(yyyyMMdd,1)]", "20260901"),
        ("$[week_begin(yyyyMMdd,0)]", "20260727"),
        ("$[week_begin(yyyyMMdd,1)]", "20260728"),
        ("$[week_end(yyyyMMdd,0)]", "20260802"),
        ("$[week_end(yyyyMMdd,-1)]", "20260801"),
        # … and by months and weeks.
        ("$[month_first_day(yyyyMMdd,-1)]", "20260701"),
        ("$[month_last_day(yyyyMMdd,-6)]", "20260228"),
        ("$[month_last_day(yyyy-MM-dd)]", "2026-08-31"),
        ("$[week_first_day(yyyyMMdd,-1)]", "20260720"),
        ("$[week_last_day(yyyyMMdd,1)]", "20260809"),
        ("$[week_last_day(yyyyMMdd)]", "20260802"),
        ("$[this_day(yyyyMMdd)]", "20260801"),
        ("$[last_day(yyyyMMdd)]", "20260731"),
        # Weeks of the year.
        ("$[year_week(yyyyMMdd)]", "202631"),
        ("$[year_week(yyyy-MM-dd)]", "2026-31"),
        ("$[year_week(yyyy-MM-dd,7)]", "2026-30"),
        # Instants.
        ("$[timestamp(yyyyMMddHHmmss)]", "1785572430"),
        ("$[timestamp(yyyyMMddHHmmss-1)]", "1785486030"),
        # Digits in the place of a part.
        ("$[timestamp(yyyyMMdd000000)]", "1785535200"),
        ("$[timestamp(yyyyMMdd000000-1)]", "1785448800"),
        ("$[timestamp(yyyyMMdd00mm30+1/24)]", "1785536430"),
        ("$[timestamp(month_begin(yyyyMMdd235959,-1))]", "1785535199"),
        ("$[timestamp(20260101000000)]", "1767222000"),
        ("$[timestamp(yyyy0231000000)]", "1772233200"),  # the last day of February
        ("$[timestamp(month_begin(yyyyMMddHHmmss,0))]", "1785572430"),
        ("$[timestamp(add_months(yyyyMMddHHmmss,-1))]", "1782894030"),
        # Units by name.
        ("$[add_years(yyyy,-1)]", "2025"),
        ("$[add_weeks(yyyyMMdd,1)]", "20260808"),
        ("$[add_days(yyyyMMdd,-1)]", "20260731"),
        ("$[add_days(yyyyMMdd,(1+2)*2)]", "20260807"),
        ("$[add_hours(HH,1)]", "11"),
        ("$[add_minutes(HHmm,-30)]", "0950"),
        ("$[add_seconds(HHmmss,30)]", "102100"),
    ],
)
def test_date_expression_renders(text: str, expected: str) -> None:
    assert render(text) == expected
    assert render(f"<{text}|{text}>") == f"<{expected}|{expected}>"
    assert check(text) == []


@pytest.mark.parametrize(
    ("base", "text", "expected"),
    [
        ("2026-01-31 00:00", "$[add_months(yyyyMMdd,1)]", "20260228"),
        ("2028-02-29 00:00", "$[add_years(yyyyMMdd,1)]", "20290228"),
        ("2026-03-31 00:00", "$[month_last_day(yyyyMMdd,-1)]", "20260228"),
        ("2026-03-31 00:00", "$[month_first_day(yyyyMMdd,-1)]", "20260201"),
        ("2026-03-01 00:00", "${system.biz.date}", "20260228"),
        ("2026-08-03 00:00", "$[week_begin(yyyyMMdd,0)]", "20260803"),
        ("2026-08-02 00:00", "$[week_begin(yyyyMMdd,0)]", "20260727"),
        # The ISO week-based year differs from the calendar year around New Year.
        ("2027-01-01 00:00", "$[year_week(yyyyMMdd)]", "202653"),
        ("2024-12-30 00:00", "$[year_week(yyyyMMdd)]", "202501"),
        ("2026-01-01 00:00", "$[year_week(yyyyMMdd,1)]", "202601"),
        ("2026-01-01 00:00", "$[year_week(yyyyMMdd,5)]", "202552"),
        ("2026-01-02 00:00", "$[year_week(yyyyMMdd,5)]", "202601"),
        # Days follow the calendar, hours the clock that never jumps.
        ("2026-03-28 12:00", "$[yyyyMMddHH+1]", "2026032912"),
        ("2026-03-28 12:00", "$[yyyyMMddHH+24/24]", "2026032913"),
        ("2026-10-26 00:30", "$[yyyyMMddHHmm-1]", "202610250030"),
        ("2026-10-26 00:30", "$[yyyyMMddHHmm-24/24]", "202610250130"),
        ("2026-03-29 01:30", "$[HHmm+1/24]", "0330"),
        ("2026-10-25 01:30", "$[HHmm+2/24]", "0230"),
        # 02:30 is skipped on 29 March: it moves behind the gap, by the gap's length.
        ("2026-03-28 02:30", "$[yyyyMMddHHmm+1]", "202603290330"),
        ("2026-03-28 02:30", "$[timestamp(yyyyMMddHHmmss+1)]", "1774747800"),
    ],
)
def test_arithmetic_follows_the_calendar_of_the_zone(base: str, text: str, expected: str) -> None:
    assert render(text, at(base)) == expected


def test_pass_of_a_repeated_hour_is_kept() -> None:
    for fold in (0, 1):
        base = datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold)
        assert render("$[timestamp(yyyyMMddHHmmss+0)]", base) == str(int(base.timestamp()))


def test_day_left_out_by_a_zone_moves_on() -> None:
    base = at("2011-12-29 12:00", "Pacific/Apia")
    assert render("$[yyyyMMddHH+1]", base) == "2011123112"


def test_base_without_zone_is_a_plain_clock() -> None:
    base = datetime(2026, 3, 28, 2, 30)
    assert render("$[yyyyMMddHHmm+1] $[HHmm+24/24]", base) == "202603290230 0230"
    with pytest.raises(InvalidMacro, match="time zone"):
        render("$[timestamp(yyyyMMddHHmmss)]", base)


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(-9_999, 9_999))
def test_day_and_month_steps_agree_with_the_calendar(day: date, n: int) -> None:
    base = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    assert render(f"$[yyyy-MM-dd{n:+}]", base) == (day + timedelta(days=n)).isoformat()
    months = day.year * 12 + day.month - 1 + n
    year, month = divmod(months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    expected = date(year, month + 1, min(day.day, last)).isoformat()
    assert render(f"$[add_months(yyyy-MM-dd,{n})]", base) == expected


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(1, 7))
def test_weeks_agree_with_the_calendar(day: date, first_weekday: int) -> None:
    def first_week(year: int) -> date:
        fourth = date(year, 1, 4)  # always in the first week of its year
        return fourth - timedelta(days=(fourth.isoweekday() - first_weekday) % 7)

    base = datetime(day.year, day.month, day.day, tzinfo=UTC)
    year = max(y for y in (day.year - 1, day.year, day.year + 1) if first_week(y) <= day)
    week = (day - first_week(year)).days // 7 + 1
    assert render(f"$[year_week(yyyy-MM-dd,{first_weekday})]", base) == f"{year}-{week:02}"
    if first_weekday == 1:
        assert (year, week) == day.isocalendar()[:2]


@given(st.lists(st.tuples(st.sampled_from("+-*"), st.integers(0, 9)), min_size=1, max_size=6))
def test_arithmetic_is_the_ordinary_one(terms: list[tuple[str, int]]) -> None:
    expression = "".join(f"{operator}{number}" for operator, number in terms).lstrip("*")
    expected = date(2026, 8, 1) + timedelta(days=eval(expression))
    if expression[0] in "+-":
        assert render(f"$[yyyyMMdd{expression}]") == f"{expected:%Y%m%d}"
    assert render(f"$[add_days(yyyyMMdd,{expression})]") == f"{expected:%Y%m%d}"
