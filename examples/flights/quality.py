"""Check one day of raw flight and weather data, without changing it.

Run by hand: ``python quality.py --date 2013-03-08 --output output``

Reads the CSV files of ``<output>/<date>/raw``, tries every rule below on every row, and writes
``<output>/<date>/quality.json``. A broken *must* makes the data unusable: exit status 1. A broken
*should* is reported with the rows concerned and an example; the pipeline goes on.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

AIRPORTS = ("EWR", "JFK", "LGA")
NEW_YORK = ZoneInfo("America/New_York")
MISSING = "NA"
FLIGHTS_HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
WEATHER_HEADER = (
    "origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,"
    "visib,time_hour"
)
# What an airport's weather station in New York can plausibly report: lowest, highest, unit.
PLAUSIBLE = {
    "temp": (-20, 110, "°F"),
    "dewp": (-40, 90, "°F"),
    "humid": (0, 100, "%"),
    "wind_dir": (0, 360, "°"),
    "wind_speed": (0, 100, "mph"),
    "wind_gust": (0, 130, "mph"),
    "precip": (0, 4, "inches in the hour"),
    "pressure": (950, 1060, "hPa"),
    "visib": (0, 10, "miles"),
}
MIN_GROUND_SPEED_MPH, MAX_GROUND_SPEED_MPH = 80, 700

Row = dict[str, str]


@dataclass(frozen=True)
class Check:
    """The outcome of one rule: how many of ``checked`` rows broke it, and one that did."""

    table: str
    rule: str
    must: bool
    checked: int
    broken: int
    example: str


class Checks:
    def __init__(self) -> None:
        self.results: list[Check] = []

    def each(
        self,
        table: str,
        rule: str,
        rows: Iterable[Row],
        holds: Callable[[Row], bool],
        *,
        must: bool = False,
    ) -> None:
        """Try ``holds`` on every row. A row with an unreadable value breaks the rule."""
        checked, broken, example = 0, 0, ""
        for row in rows:
            checked += 1
            try:
                good = holds(row)
            except (ValueError, TypeError, KeyError):
                good = False
            if not good:
                broken += 1
                example = example or ",".join(str(value) for value in row.values())
        self.results.append(Check(table, rule, must, checked, broken, example))

    def whole(self, table: str, rule: str, problem: str, *, must: bool = False) -> None:
        """Record a rule about a table as a whole, broken when there is a ``problem``."""
        self.results.append(Check(table, rule, must, 1, int(bool(problem)), problem))


def reported(rows: Iterable[Row], *columns: str) -> list[Row]:
    """The rows in which none of ``columns`` is missing."""
    return [row for row in rows if all(row[column] != MISSING for column in columns)]


def minutes(clock: str) -> int:
    """Minutes since midnight of a clock time written as in the data: ``517`` is 05:17."""
    return int(clock) // 100 * 60 + int(clock) % 100


def is_date(row: Row, day: date) -> bool:
    return (int(row["year"]), int(row["month"]), int(row["day"])) == (day.year, day.month, day.day)


def in_utc(row: Row, day: date) -> bool:
    """Whether ``time_hour`` is the row's local hour, as New York's clocks stood that day."""
    local = datetime(day.year, day.month, day.day, int(row["hour"]), tzinfo=NEW_YORK)
    return datetime.fromisoformat(row["time_hour"]) == local


def delay_agrees(row: Row) -> bool:
    clocks = minutes(row["dep_time"]) - minutes(row["sched_dep_time"])
    return (clocks - int(row["dep_delay"])) % (24 * 60) == 0


def speed_is_plausible(row: Row) -> bool:
    speed = int(row["distance"]) / (int(row["air_time"]) / 60)
    return MIN_GROUND_SPEED_MPH <= speed <= MAX_GROUND_SPEED_MPH


def is_plausible(column: str) -> Callable[[Row], bool]:
    low, high, _ = PLAUSIBLE[column]
    return lambda row: low <= float(row[column]) <= high


def hours_of(day: date) -> int:
    """Hours between the two midnights in New York: 24, or 23 and 25 when the clocks change."""
    first, last = (
        datetime(each.year, each.month, each.day, tzinfo=NEW_YORK).astimezone(UTC)
        for each in (day, day + timedelta(days=1))
    )
    return round((last - first) / timedelta(hours=1))


def check_flights(checks: Checks, flights: list[Row], airlines: set[str], day: date) -> None:
    def each(rule: str, rows: list[Row], holds: Callable[[Row], bool], must: bool = False) -> None:
        checks.each("flights", rule, rows, holds, must=must)

    def identity(row: Row) -> tuple[str, ...]:
        return (row["carrier"], row["flight"], row["origin"], row["sched_dep_time"])

    times = Counter(map(identity, flights))
    seen = {row["origin"] for row in flights}
    missing = [airport for airport in AIRPORTS if airport not in seen]
    problem = f"none from {', '.join(missing)}" if missing else ""
    checks.whole("flights", "every airport has flights", problem, must=True)
    each(f"date is {day}", flights, lambda row: is_date(row, day), must=True)
    each("airport is EWR, JFK or LGA", flights, lambda row: row["origin"] in AIRPORTS, must=True)
    each("flight is listed once", flights, lambda row: times[identity(row)] == 1)
    each("airline has a name", flights, lambda row: row["carrier"] in airlines)
    each("time_hour is the scheduled local hour", flights, lambda row: in_utc(row, day))
    each(
        "delay = departure − schedule",
        reported(flights, "dep_time", "dep_delay"),
        delay_agrees,
    )
    each(
        f"ground speed is {MIN_GROUND_SPEED_MPH} to {MAX_GROUND_SPEED_MPH} mph",
        reported(flights, "air_time"),
        speed_is_plausible,
    )
    each(
        "aircraft that left is known",
        reported(flights, "dep_time"),
        lambda row: row["tailnum"] != MISSING,
    )


def check_weather(checks: Checks, weather: list[Row], day: date) -> None:
    expected = hours_of(day)
    for airport in AIRPORTS:
        got = len({row["time_hour"] for row in weather if row["origin"] == airport})
        problem = f"{got} of {expected} hours" if got != expected else ""
        checks.whole("weather", f"{airport} reports all {expected} hours", problem)
    checks.each("weather", f"date is {day}", weather, lambda row: is_date(row, day), must=True)
    checks.each("weather", "time_hour is the local hour", weather, lambda row: in_utc(row, day))
    for column, (low, high, unit) in PLAUSIBLE.items():
        rule = f"{column} is {low} to {high} {unit}"
        checks.each("weather", rule, reported(weather, column), is_plausible(column))


def read(path: Path, header: str, checks: Checks) -> list[Row]:
    """The rows of ``path``; none, and a broken *must*, when it has another ``header``."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        found = ",".join(reader.fieldnames or ())
        problem = "" if found == header else f"columns are {found}"
        checks.whole(path.stem, "columns are those expected", problem, must=True)
        return [] if problem else list(reader)


def write(path: Path, checks: Checks) -> None:
    """Replace ``path`` in one step, so that a reader never meets half a file."""
    partial = path.with_name(f".{path.name}.partial")
    results = [asdict(check) for check in checks.results]
    partial.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check one day of raw flight and weather data.")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="YYYY-MM-DD")
    parser.add_argument("--output", required=True, type=Path, help="folder of the results")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    day = args.output / args.date.isoformat()
    raw = day / "raw"
    checks = Checks()
    airlines = {row["carrier"] for row in read(raw / "airlines.csv", "carrier,name", checks)}
    check_flights(checks, read(raw / "flights.csv", FLIGHTS_HEADER, checks), airlines, args.date)
    check_weather(checks, read(raw / "weather.csv", WEATHER_HEADER, checks), args.date)
    write(day / "quality.json", checks)

    broken = [check for check in checks.results if check.broken]
    print(f"{args.date}: {len(checks.results)} rules checked, {len(broken)} broken")
    for check in broken:
        kind = "MUST  " if check.must else "should"
        print(f"  {kind} {check.table}: {check.rule}: {check.broken} of {check.checked} not")
        print(f"         for example {check.example}")
    return 1 if any(check.must for check in broken) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FileNotFoundError as error:
        sys.exit(f"quality: {error.filename} is missing; run fetch for this date first")
