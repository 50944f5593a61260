"""Parameters in task texts, and what is wrong with a text."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import ShoalError
from shoal.core.macros import placeholders as macros
from shoal.core.macros.placeholders import InvalidMacro, check, escape, names
from tests.support.growth import keeps, shortest_s
from tests.unit.core.decide.rendering import BASE, render


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
        # Places in a list: JSON paths, which databases read.
        *((f"$[{n}]", f"$[{n}]") for n in range(10)),
        ("json_value(doc, '$[0].name') = $[12][3]", "json_value(doc, '$[0].name') = $[12][3]"),
        ("$[${n}]$[0] $$[0]", "$[3]$[0] $[0]"),
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
        ("$[timestamp(yyyyMMdd240000)]", 13, "must be yyyyMMddHHmmss; digits may stand for a part"),
        ("$[timestamp(yyyyMMdd0000)]", 13, "must be yyyyMMddHHmmss"),
        ("$[timestamp(yyyy1300000000)]", 13, "must be yyyyMMddHHmmss"),
        ("$[timestamp(0000MMdd000000)]", 13, "must be yyyyMMddHHmmss"),
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


def use(text: str) -> None:
    """Do all that is done with a text."""
    check(text)
    names(text)
    try:
        assert len(render(text, a="1")) <= 2 * len(text)
    except InvalidMacro:
        assert "$[" in text


@pytest.mark.parametrize(
    "piece",
    ["${", "$[", "}", "]", "'", "$$[", "${a}", "$[yyyy]", "$['", "${'[", "x", "$", "${a}$[", "[$("],
)
def test_text_made_to_be_slow_is_not(piece: str) -> None:
    # Eight times as long may take eight times as long, and some more. A quadratic scan takes 64
    # times as long, on any machine.
    short, long = (piece * (size // len(piece)) for size in (2**13, 2**16))
    assert keeps(25 * shortest_s(lambda: use(short)) + 1e-3, lambda: use(long))


def test_megabyte_of_script_is_rendered() -> None:
    line = 'echo "${day}" $[yyyyMMdd] ${HOME} \'{"a": [1, {"b": 2}]}\'\n'
    count = 2**20 // len(line)
    assert check(line * count) == []
    expected = 'echo "20260731" 20260801 ${HOME} \'{"a": [1, {"b": 2}]}\'\n'
    assert render(line * count, day="$[yyyyMMdd-1]") == expected * count
    assert render("${big}", big=escape(line * count)) == line * count


@pytest.mark.parametrize("text", ["'$[0].name'", "$[9]", "$[123456789012345678901]", "$[0][1]"])
def test_place_in_a_list_is_no_date(text: str) -> None:
    assert check(text) == []
    assert render(text) == text


@pytest.mark.parametrize(
    "text", ["$[-1]", "$[0-1]", "$[ ]", "$[x]", "$[\N{ARABIC-INDIC DIGIT ONE}]"]
)
def test_what_only_resembles_a_place_in_a_list_is_refused(text: str) -> None:
    assert len(check(text)) == 1
