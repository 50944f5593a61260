import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.errors import ShoalError
from shoal.core.timing.durations import InvalidDuration, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("10m", 600),
        ("1h30m", 5_400),
        ("1h 30m", 5_400),
        ("2d", 172_800),
        ("500ms", 0.5),
        ("1d2h3m4s5ms", 93_784.005),
        ("1.5h", 5_400),
        ("0s", 0),
        (" 15 ", 15),
        ("2.5", 2.5),
        (7, 7),
        (0.25, 0.25),
    ],
)
def test_duration_is_read_in_seconds(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  ",
        "s",
        "10x",
        "10 m s",
        "-5s",
        "5m1h",
        "5s5s",
        "1h30",
        "1e3",
        "٣s",
        "10M",
        "nan",
        "inf",
        "1" * 100,
        -1,
        float("nan"),
        float("inf"),
        True,
    ],
)
def test_nonsense_is_refused_by_name(value: str | float) -> None:
    with pytest.raises(
        InvalidDuration, match=r"duration .*: .*; write a number of seconds"
    ) as info:
        parse_duration(value)
    assert isinstance(info.value, ValueError)
    assert isinstance(info.value, ShoalError)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.25, "250ms"),
        (0.9996, "1.0s"),
        (3.21, "3.2s"),
        (59.96, "1m 00s"),
        (65, "1m 05s"),
        (3_599.6, "1h 00m"),
        (7_380, "2h 03m"),
        (86_399, "1d 00h"),
        (100_800, "1d 04h"),
        (-65, "-1m 05s"),
    ],
)
def test_duration_is_written_in_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_endless_duration_is_not_written() -> None:
    with pytest.raises(InvalidDuration):
        format_duration(float("inf"))


@given(st.floats(min_value=0, max_value=10**8))
def test_written_duration_reads_back_nearly_the_same(seconds: float) -> None:
    again = parse_duration(format_duration(seconds))
    # Half of the smaller unit shown: 0.5 ms, 50 ms, 0.5 s, 30 s, 30 min.
    allowed = next(
        half
        for below, half in [(1, 0.0005), (60, 0.05), (3_600, 0.5), (86_400, 30), (10**9, 1_800)]
        if seconds < below
    )
    assert abs(again - seconds) <= allowed + 1e-9
