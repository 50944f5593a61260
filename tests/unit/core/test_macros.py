"""Parameters and date expressions in task texts."""

import calendar
import time
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core import macros
from shoal.core.errors import ShoalError
from shoal.core.macros import InvalidMacro, check, escape, names

BERLIN = ZoneInfo("Europe/Berlin")
BASE = datetime(2026, 8, 1, 10, 20, 30, 45_600, tzinfo=BERLIN)  # a Saturday


def render(text: str, base: datetime = BASE, /, **parameters: str) -> str:
    return macros.render(text, base=base, parameters=parameters)


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


# Parameters.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${name}", "shoal"),
        ("a${name}b${name}", "ashoalbshoal"),
        ("${nobody} ${HOME:-/root}", "${nobody} ${HOME:-/root}"),
        ("${outer}", "<shoal>"),
        ("${part_${which}}", "second"),
        ("${part_${nobody}}", "${part_${nobody}}"),
        ("${HOME:-${name}}", "${HOME:-shoal}"),
        ("${}", "${}"),
        ("${empty}|", "|"),
        # Parameters in dates, dates in parameters.
        ("$[yyyyMMdd-${n}]", "20260729"),
        ("$[yyyyMMdd+${minus}]", "20260729"),
        ("$[add_months(${format},-1)]", "2026-07"),
        ("${yesterday}", "20260731"),
        ("${path}", "/data/20260731/shoal"),
        ("$[${yesterday_format}]", "20260731"),
        # Literal text.
        ("$${name} $$[yyyy]", "${name} $[yyyy]"),
        ("$$${name}", "$${name}"),
        ("$$ $ $$$ $(date) $1 }]'", "$$ $ $$$ $(date) $1 }]'"),
        ("${quoted}", "${name} $[yyyy]"),
        # What was inserted is not read again.
        ("${dollar}[yyyy]", "$[yyyy]"),
        ("${dollar}{name}", "${name}"),
        ("${dollar}${name}", "$shoal"),
        ("5${dollar}$[yyyy]", "5$2026"),
        # A brace that is never closed is plain text.
        ("${name", "${name"),
        ("${a $[yyyy] ${name}", "${a 2026 shoal"),
        ("a ${ b", "a ${ b"),
    ],
)
def test_parameters_are_replaced(text: str, expected: str) -> None:
    assert (
        render(
            text,
            name="shoal",
            outer="<${name}>",
            which="2",
            part_2="second",
            empty="",
            n="3",
            minus="-3",
            format="yyyy-MM",
            yesterday="$[yyyyMMdd-1]",
            yesterday_format="yyyyMMdd-1",
            path="/data/${yesterday}/${name}",
            quoted="$${name} $$[yyyy]",
            dollar="$",
        )
        == expected
    )


def test_builtin_parameters_cannot_be_redefined() -> None:
    text = macros.render(
        "${system.biz.date}", base=BASE, parameters={"system.biz.date": "20000101"}
    )
    assert text == "20260731"
    assert "system.biz.date" in macros.BUILTINS


def test_other_system_parameters_come_from_the_caller() -> None:
    parameters = {"system.task.instance.id": "17"}
    assert macros.render("${system.task.instance.id}", base=BASE, parameters=parameters) == "17"


def test_circle_of_parameters_is_shown() -> None:
    with pytest.raises(InvalidMacro, match="a → b → c → a") as info:
        render("${a}", a="${b}", b="${c}", c="x ${a}")
    assert info.value.parameter == "c"
    assert (info.value.line, info.value.column) == (1, 3)
    with pytest.raises(InvalidMacro, match="me → me"):
        render("${me}", me="${me}")


def test_parameter_used_twice_is_no_circle() -> None:
    assert render("${a}${b}", a="${c}", b="${c}", c="x") == "xx"


def test_definitions_are_bounded_in_depth_and_size() -> None:
    chain = {f"p{n}": f"${{p{n + 1}}}" for n in range(1_000)}
    with pytest.raises(InvalidMacro, match="more than 50 deep"):
        render("${p0}", **chain)
    doubling = {f"p{n}": f"${{p{n + 1}}}" * 2 for n in range(40)} | {"p40": "x" * 100}
    with pytest.raises(InvalidMacro, match="the result is longer"):
        render("${p0}", **doubling)
    with pytest.raises(InvalidMacro, match="nested more than 32 deep"):
        render("${" * 40 + "}" * 40)


@pytest.mark.parametrize(
    "value",
    [
        "'\"`\\",
        "line\nline",
        "$(rm -rf /)",
        "日本\U0001f41f\x00",
        "$${x}",
        "$[",
        "${",
        "a$[b]c",
        "$$[",
    ],
)
def test_escaped_data_arrives_as_it_is(value: str) -> None:
    assert render(escape(value)) == value
    assert render("<${data}>", data=escape(value)) == f"<{value}>"
    assert render("<${outer}>", outer="(${data})", data=escape(value)) == f"<({value})>"


@given(st.text(alphabet="$[]{}'ab+-1y \n"))
def test_any_escaped_text_renders_to_itself(value: str) -> None:
    assert render(escape(value)) == value
    assert render("${data}", data=escape(value)) == value
    assert check(escape(value)) == []
    assert names(escape(value)) == set()


def failure(text: str) -> InvalidMacro | None:
    try:
        render(text)
    except InvalidMacro as error:
        return error
    return None


@given(st.text(alphabet="$[]{}'()abyMd+-*/12, \n", max_size=60))
def test_what_check_lets_pass_renders_and_what_it_finds_does_not(text: str) -> None:
    problems = check(text)
    failed = failure(text)
    if failed is None:
        assert problems == []
    elif "${" not in text and "outside the years" not in failed.reason:
        assert str(failed) in problems


# Errors.


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("$[]", 3, "empty"),
        ("$[ ]", 3, "empty"),
        ("x $[yyyyQQ]", 9, "'Q' is not supported"),
        ("$[YYYY]", 3, "'Y' is not supported"),
        ("$[hh:mm]", 3, "'h' is not supported"),
        ("$[yyyyMMddT]", 11, "'T' is not supported"),
        ("$[yyy]", 3, "'yyy' has too many or too few"),
        ("$[ddd]", 3, "'ddd' has too many or too few"),
        ("$[MMMMM]", 3, "'MMMMM' has too many or too few"),
        ("$[1+2]", 3, "shows nothing of the date"),
        ("$[0-9]", 3, "shows nothing of the date"),
        ("$['x']", 3, "shows nothing of the date"),
        ("$[+1]", 3, "pattern in front of the offset is missing"),
        ("$[yyyy[MM]", 7, "'[' has no meaning"),
        ("$[yyyyMMdd+1d]", 11, "'+1d' is not an offset"),
        ("$[yyyy-MM-01 HH]", 10, "'-01 HH' is not an offset"),
        ("$[yyyy-MM-01]", 13, "reads as an offset"),
        ("$[yyyyMMdd+]x", 0, ""),
        ("$[yyyyMMdd+1)]", 13, "')' is not expected"),
        ("$[yyyyMMdd+(1]", 14, "a ) is missing"),
        ("$[yyyyMMdd+1*]", 14, "a number is missing"),
        ("$[yyyyMMdd+1/0]", 15, "division by zero"),
        ("$[yyyyMMdd+1/(1-1)]", 19, "division by zero"),
        ("$[yyyyMMdd+1234567890]", 22, "more than 9 digits"),
        ("$[yyyyMMdd+" + "(" * 30 + "1" + ")" * 30 + "]", 33, "nested more than 20 deep"),
        ("$[add_months(yyyyMMdd)]", 14, "takes 2 arguments, not 1"),
        ("$[add_months(yyyyMMdd,1,2)]", 14, "takes 2 arguments, not 3"),
        ("$[add_months(yyyyMMdd,x)]", 23, "a number is missing"),
        ("$[add_months(yyyyMMdd,)]", 23, "a number is missing"),
        ("$[add_months(yyyyMMdd,1]", 14, "the ) of add_months( is missing"),
        ("$[add_months(yyyyMMdd,1)-1]", 25, "nothing may follow"),
        ("$[add_months(QQ,1)]", 14, "'Q' is not supported"),
        ("$[last_day(yyyyMMdd,1)]", 12, "takes 1 argument, not 2"),
        ("$[next_day(yyyyMMdd)]", 3, "unknown function 'next_day'"),
        ("$[year_week(yyyyMMdd,8)]", 22, "day 1 (Monday) to 7"),
        ("$[year_week(QQ)]", 13, "'Q' is not supported"),
        ("$[timestamp(yyyyMMdd)]", 13, "must be yyyyMMddHHmmss"),
        ("$[timestamp(yyyyMMddHHmmss-1/0)]", 31, "division by zero"),
        ("$[timestamp(year_week(yyyy))]", 13, "timestamp cannot hold year_week"),
        ("$[timestamp(add_days(yyyyMMdd,1))]", 22, "must be yyyyMMddHHmmss"),
        ("$[yyyy $[MM]]", 1, "cannot stand inside"),
        ("$[yyyyMMdd", 1, "its ] is missing"),
        ("$['yyyy]", 1, "a quote inside it is not closed"),
        ("$[" + "y" * 600 + "]", 3, "longer than 500 characters"),
    ],
)
def test_bad_expression_is_refused_with_its_place(text: str, column: int, words: str) -> None:
    if not column:  # a sign without a number is plain text
        assert check(text) == []
        assert render(text) == "20260801+x"
        return
    [problem] = check(text)
    assert problem.startswith(f"line 1, column {column}: ")
    assert words in problem
    with pytest.raises(InvalidMacro) as info:
        render(text)
    assert str(info.value) == problem
    assert info.value.position == column - 1
    assert isinstance(info.value, ValueError)
    assert isinstance(info.value, ShoalError)


def test_check_finds_every_problem_in_order_with_its_line() -> None:
    text = "ok $[yyyy]\n$[Q] ${a} $[yyyy-MM-${n}Q]\n  $[yyyyMMdd+1/0] ${x$[U]} $[dd"
    assert [problem.split(": ")[0] for problem in check(text)] == [
        "line 2, column 3",
        "line 3, column 17",
        "line 3, column 24",
        "line 3, column 28",
    ]


def test_expression_with_parameter_fails_when_rendered() -> None:
    assert check("$[yyyyMMdd-${n}]") == []
    with pytest.raises(InvalidMacro, match="'x' is not supported") as info:
        render("a\n $[yyyyMMdd-${n}]", n="x")
    assert (info.value.line, info.value.column) == (2, 4)


def test_open_quote_from_a_parameter_is_refused() -> None:
    with pytest.raises(InvalidMacro, match="a quote is not closed"):
        render("$[yyyy${quote}]", quote="'x")


def test_problem_in_a_parameter_names_the_parameter() -> None:
    with pytest.raises(InvalidMacro, match="value of parameter 'day', line 1, column 5") as info:
        render("${day}", day="x $[Q]")
    assert info.value.parameter == "day"


@pytest.mark.parametrize(
    "text",
    [
        "$[yyyyMMdd+999999999]",
        "$[yyyyMMdd-999999]",
        "$[add_months(yyyy,-999999999)]",
        "$[add_hours(yyyy,999999999)]",
        "$[yyyyMMdd+999999999*999999999*999999999]",
        "$[week_begin(yyyy,-999999)]",
    ],
)
def test_result_outside_the_calendar_is_refused(text: str) -> None:
    assert check(text) == []
    with pytest.raises(InvalidMacro, match="outside the years 1 to 9999"):
        render(text)


def test_first_day_of_the_calendar_has_no_business_date() -> None:
    with pytest.raises(InvalidMacro, match="outside the years"):
        render("${system.biz.date}", datetime(1, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidMacro, match="outside the years"):
        render("$[year_week(yyyy,2)]", datetime(1, 1, 1, tzinfo=UTC))


def test_names_are_those_written_plainly() -> None:
    text = "${a} $${b} ${c_${d}} $[yyyy-${e}] ${system.datetime} ${a} ${open"
    assert names(text) == {"a", "d", "e", "system.datetime"}


@pytest.mark.parametrize(
    "piece",
    ["${", "$[", "}", "]", "'", "$$[", "${a}", "$[yyyy]", "$['", "${'[", "x", "$", "${a}$[", "[$("],
)
def test_text_made_to_be_slow_is_not(piece: str) -> None:
    text = piece * (2**18 // len(piece))
    started = time.process_time()
    check(text)
    names(text)
    try:
        assert len(render(text, a="1")) <= 2 * len(text)
    except InvalidMacro:
        assert "$[" in piece
    # A quadratic scan would need hours; the bound is far above what a slow machine needs.
    assert time.process_time() - started < 15


def test_megabyte_of_script_is_rendered() -> None:
    line = 'echo "${day}" $[yyyyMMdd] ${HOME} \'{"a": [1, {"b": 2}]}\'\n'
    count = 2**20 // len(line)
    assert check(line * count) == []
    expected = 'echo "20260731" 20260801 ${HOME} \'{"a": [1, {"b": 2}]}\'\n'
    assert render(line * count, day="$[yyyyMMdd-1]") == expected * count
    assert render("${big}", big=escape(line * count)) == line * count
