"""What the cluster did, and what is to come: load by hour, forecast, hot minutes."""

from collections.abc import Iterator, Sequence
from html import escape

from shoal.insight.pages.charts import HeatCell, heat_map, steps
from shoal.insight.pages.document import Section, folded, table
from shoal.insight.report.answers import Answer, Collected
from shoal.insight.report.words import length, minute, plural, share

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MOST_MINUTES = 10
_MOST_MOVES = 10
_MOST_WORKERS = 20
_FORECAST_KEY = (
    '<p class="key"><span><i class="o"></i>slots that are enough in 95 of 100 such hours</span>'
    '<span><i class="b"></i>slots that are expected</span></p>'
)


def sections(found: Collected) -> Iterator[Section]:
    """Yield the sections that there is something to say in."""
    if found.load is not None and found.load["groups"]:
        yield _load(found.load)
    if found.load is not None and found.load["forecast"]:
        yield _forecast(found.load)
    if found.hot_minutes or found.minutes["moves"]:
        yield _minutes(found)


def busiest(cells: Sequence[Answer]) -> Answer:
    """Return the hour of the week in which most ran."""
    return max(cells, key=lambda one: (one["running_mean"], -one["weekday"], -one["hour"]))


def when(cell: Answer) -> str:
    """Return an hour of the week: ``Mon 02:00``."""
    return f"{_DAYS[cell['weekday']]} {cell['hour']:02}:00"


def _load(load: Answer) -> Section:
    body: list[str] = []
    for index, group in enumerate(load["groups"]):
        cells, name = group["cells"], group["worker_group"]
        most = busiest(cells)
        told = (
            f"Busiest: {when(most)}, with {most['running_mean']:.1f} running on average, "
            f"{most['running_max']:,} at most, and {most['waiting_max']:,} waiting at most."
        )
        drawn = heat_map(
            f"load-{index}",
            f"Worker group {name}: attempts that run, by hour of the week",
            told,
            _DAYS,
            [f"{hour:02}" for hour in range(24)],
            [
                HeatCell(
                    one["weekday"],
                    one["hour"],
                    one["running_mean"],
                    f"{when(one)}: {one['running_mean']:.1f} running on average, "
                    f"{one['running_max']:,} at most; {one['waiting_max']:,} waiting at most",
                )
                for one in cells
            ],
        )
        body.append(f"<h3>Worker group {escape(name)}</h3>")
        body.append(f"<figure>{drawn}<figcaption>{escape(told)}</figcaption></figure>")
        fullest = sorted(cells, key=lambda one: (-one["needed_max"], one["weekday"], one["hour"]))
        body += folded(
            "The fullest hours, as a table",
            f"Worker group {name}: hours in which most ran or waited at once",
            ["hour", "running", "at most", "waiting", "at most", "slots so that none waits"],
            (
                [
                    when(one),
                    f"{one['running_mean']:.1f}",
                    f"{one['running_max']:,}",
                    f"{one['waiting_mean']:.1f}",
                    f"{one['waiting_max']:,}",
                    f"{one['needed_max']:,}",
                ]
                for one in fullest[:24]
            ),
        )
    body += folded(
        "Workers, as a table",
        "The busiest come first; used: of their slots, in the hours in which they worked",
        ["worker", "attempts", "failed", "lost", "busy", "slots", "used"],
        (
            [
                one["worker"],
                f"{one['attempts']:,}",
                f"{one['failed']:,}",
                f"{one['lost']:,}",
                length(one["busy_s"]),
                f"{one['slots']:,}",
                share(one["utilisation"]),
            ]
            for one in load["workers"][:_MOST_WORKERS]
        ),
    )
    lead = "How many attempts run in each hour of the week. The deeper the colour, the more. UTC."
    return Section("load", "When it is full", lead, body)


def _forecast(load: Answer) -> Section:
    groups: dict[str, list[Answer]] = {}
    for one in load["forecast"]:
        groups.setdefault(one["worker_group"], []).append(one)
    body: list[str] = []
    for index, (name, hours) in enumerate(sorted(groups.items())):
        hours.sort(key=lambda one: (one["forecast_day"], one["hour"]))
        most = max(hours, key=lambda one: one["slots"])
        told = (
            f"Most are needed on {most['forecast_day']} at {most['hour']:02}:00: "
            f"{most['slots']:,} slots; {most['expected']:.0f} are expected."
        )
        drawn = steps(
            f"forecast-{index}",
            f"Worker group {name}: slots that the next days will need",
            told,
            [one["forecast_day"][5:] if one["hour"] == 0 else "" for one in hours],
            {
                "slots": [one["slots"] for one in hours],
                "expected": [one["expected"] for one in hours],
            },
        )
        body.append(f"<h3>Worker group {escape(name)}</h3>")
        body.append(
            f"<figure>{drawn}<figcaption>{_FORECAST_KEY}{escape(told)}"
            f"{escape(_tested(hours[0]))}</figcaption></figure>"
        )
        by_day: dict[str, list[Answer]] = {}
        for one in hours:
            by_day.setdefault(one["forecast_day"], []).append(one)
        body += folded(
            "Day by day, as a table",
            f"Worker group {name}: the fullest hour of each day",
            ["day", "fullest hour", "slots", "expected"],
            (
                [
                    day,
                    f"{top['hour']:02}:00",
                    f"{top['slots']:,}",
                    f"{top['expected']:.1f}",
                ]
                for day, some in by_day.items()
                for top in [max(some, key=lambda one: one["slots"])]
            ),
        )
    lead = f"Slots that the 7 days after {load['forecast_of']} will need."
    return Section("forecast", "What is to come", lead, body)


def _tested(hour: Answer) -> str:
    if not hour["tested_hours"] or hour["within_p95"] is None:
        return ""
    return (
        f" Forecasts of {hour['tested_hours']:,} hours of the last four weeks were right in "
        f"{hour['within_p95']:.0%}; the median error was {hour['error_p50']:.1f} slots."
    )


def _minutes(found: Collected) -> Section:
    hot, moves = found.hot_minutes, found.minutes["moves"]
    body: list[str] = []
    if hot:
        body += table(
            "The fullest minutes of the day, UTC; skew: from the logical time to the start",
            ["minute", "starts a day", "at most", "skew p50", "skew p95"],
            (
                [
                    minute(one["minute"]),
                    f"{one['starts_mean']:.1f}",
                    f"{one['starts_max']:,}",
                    length(one["skew_p50_s"]),
                    length(one["skew_p95_s"]),
                ]
                for one in hot[:_MOST_MINUTES]
            ),
        )
    if moves:
        body += table(
            "Schedules that would better fire some minutes earlier or later",
            ["workflow", "schedule", "fires in", "move by", "most in a minute"],
            (
                [
                    f"{one['project']}/{one['workflow']}",
                    f"{one['schedule_id']}",
                    minute(one["minute"]),
                    f"{one['move_min']:+} min",
                    ""
                    if one["highest_before"] is None
                    else f"{one['highest_before']:.0f} → {one['highest_after']:.0f}",
                ]
                for one in moves[:_MOST_MOVES]
            ),
        )
    lead = f"{plural(len(hot), 'minute')} of the day in which very many schedules fire at once."
    return Section("minutes", "Hot minutes", lead if hot else "Moves that would help.", body)
