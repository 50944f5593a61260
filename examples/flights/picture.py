"""Draw one day of departures from New York: flights by hour over the weather, and who was hit.

Run by hand: ``python picture.py --date 2013-03-08 --output output``

Reads ``<output>/<date>/report.json`` and writes ``<output>/<date>/report.png``, 1716 × 1144 pixels.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # draws into memory: a worker has no screen

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

STATUSES = {  # column -> legend, colour
    "on_time": ("on time (under 15 min)", "#5aa9a4"),
    "late": ("15–59 min late", "#f0c25c"),
    "very_late": ("an hour or more late", "#dd6e42"),
    "cancelled": ("cancelled", "#474b57"),
}
INK, FAINT, GRID = "#2b2d35", "#676b77", "#e6e7ea"
SKY, WIND, WATER = "#a9bfd6", "#7d8597", "#4178a8"
DPI = 130

Row = dict[str, Any]  # a line of a table of the report: column -> value
Report = dict[str, Any]


def picture(report: Report) -> Figure:
    """Left: flights by hour above the weather of the hour. Right: who was hit, in shares."""
    plt.rcParams.update(
        {
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "text.color": INK,
            "axes.edgecolor": FAINT,
            "axes.labelcolor": FAINT,
            "xtick.color": FAINT,
            "ytick.color": FAINT,
        }
    )
    figure = plt.figure(figsize=(13.2, 8.8), facecolor="white")
    left = figure.add_gridspec(
        4,
        1,
        left=0.052,
        right=0.585,
        top=0.79,
        bottom=0.105,
        height_ratios=(3.4, 1, 1, 1),
        hspace=0.32,
    )
    right = figure.add_gridspec(
        2, 1, left=0.755, right=0.975, top=0.79, bottom=0.105, height_ratios=(3, 13), hspace=0.2
    )
    hours = flying_hours(report["hours"])
    flights = figure.add_subplot(left[0])
    draw_flights(flights, hours)
    strips = [figure.add_subplot(left[row], sharex=flights) for row in (1, 2, 3)]
    draw_visibility(strips[0], hours)
    draw_wind(strips[1], hours)
    draw_precipitation(strips[2], hours)
    for axes in (flights, *strips[:2]):
        axes.tick_params(labelbottom=False)
    strips[2].set_xlabel("scheduled hour of departure, local time")

    draw_shares(figure.add_subplot(right[0]), "Airports, share of flights", report["airports"])
    airlines = fold_small(report["airlines"])
    draw_shares(figure.add_subplot(right[1]), "Airlines, share of flights", airlines)

    figure.text(0.025, 0.949, report["title"], size=21, weight="bold")
    figure.text(0.025, 0.912, report["headline"], size=12.5)
    figure.text(0.025, 0.886, f"Weather: {report['weather']}", size=10.5, color=FAINT)
    legend = [Patch(color=colour, label=label) for label, colour in STATUSES.values()]
    figure.legend(
        handles=legend, loc="upper left", bbox_to_anchor=(0.018, 0.876), ncols=4, frameon=False
    )
    figure.text(0.025, 0.022, report["source"], size=8, color=FAINT)
    return figure


def flying_hours(hours: Sequence[Row]) -> list[Row]:
    """The hours from the first scheduled departure to the last."""
    busy = [row["hour"] for row in hours if row["flights"]]
    return [row for row in hours if min(busy) <= row["hour"] <= max(busy)]


def fold_small(groups: Sequence[Row]) -> list[Row]:
    """Groups of fewer than ten flights as one: a bar of 100 % for one flight says nothing."""
    large = [row for row in groups if row["flights"] >= 10]
    small = [row for row in groups if row["flights"] < 10]
    if len(small) < 2:
        return list(groups)
    columns = ("flights", *STATUSES)
    others = {column: sum(row[column] for row in small) for column in columns}
    return [*large, {"name": f"{len(small)} others", **others}]


def bare(axes: Axes, title: str) -> None:
    """Title on the left, horizontal lines only."""
    axes.set_title(title, loc="left", size=10.5, color=INK, weight="bold", pad=5)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def draw_flights(axes: Axes, hours: Sequence[Row]) -> None:
    bare(axes, "Flights by scheduled hour")
    at = [row["hour"] for row in hours]
    bottom = [0] * len(hours)
    for status, (_, colour) in STATUSES.items():
        heights = [row[status] for row in hours]
        axes.bar(at, heights, bottom=bottom, width=0.82, color=colour)
        bottom = [below + height for below, height in zip(bottom, heights, strict=True)]
    axes.set_xlim(at[0] - 0.6, at[-1] + 0.6)
    axes.set_xticks(at, [f"{hour:02d}" for hour in at])
    axes.set_ylim(0, 1.08 * max(bottom))
    for row in hours:
        if row["median_delay_min"] is not None:
            label = signed(row["median_delay_min"])
            axes.annotate(label, (row["hour"], row["flights"]), (0, 3), ha="center", size=8.5,
                          textcoords="offset points", color=FAINT)  # fmt: skip
    axes.annotate("above the bars: median delay of the flights that left, minutes", (1, 1.04),
                  xycoords="axes fraction", ha="right", size=8.5, color=FAINT)  # fmt: skip


def signed(minutes: float) -> str:
    return f"{round(minutes):+d}".replace("-", "−") if round(minutes) else "0"


def series(hours: Sequence[Row], column: str) -> tuple[list[int], list[float]]:
    """Hours and values, not-a-number where nothing was reported, so that a line has a gap."""
    missing = float("nan")
    values = [missing if row[column] is None else float(row[column]) for row in hours]
    return [row["hour"] for row in hours], values


def draw_visibility(axes: Axes, hours: Sequence[Row]) -> None:
    bare(axes, "Visibility, miles: mean of the three airports; dashed: the lowest")
    at, mean = series(hours, "visibility_mi")
    axes.fill_between(at, mean, color=SKY, alpha=0.55, linewidth=0)
    axes.plot(at, mean, color=SKY, linewidth=1.5)
    axes.plot(*series(hours, "min_visibility_mi"), color=INK, linewidth=1.2, linestyle=(0, (2, 2)))
    axes.set_ylim(0, 11)
    axes.set_yticks((0, 5, 10))


def draw_wind(axes: Axes, hours: Sequence[Row]) -> None:
    bare(axes, "Wind, mph: mean of the three airports; dashed: the strongest gust reported")
    at, wind = series(hours, "wind_mph")
    _, gusts = series(hours, "max_gust_mph")
    axes.fill_between(at, wind, color=WIND, alpha=0.3, linewidth=0)
    axes.plot(at, wind, color=WIND, linewidth=1.5)
    axes.plot(at, gusts, color=INK, linewidth=1, linestyle=(0, (2, 2)), marker="o", markersize=3)
    axes.set_yticks((0, 20, 40))
    axes.set_ylim(0, max([45.0, *(1.1 * value for value in (*wind, *gusts) if value == value)]))


def draw_precipitation(axes: Axes, hours: Sequence[Row]) -> None:
    bare(axes, "Rain or melted snow, inches in the hour: mean of the three airports")
    at, water = series(hours, "precip_in")
    axes.bar(at, water, width=0.82, color=WATER)
    axes.set_ylim(0, max([0.06, *(1.15 * value for value in water if value == value)]))
    if not any(value > 0 for value in water):
        axes.text(0.5, 0.4, "none", transform=axes.transAxes, ha="center", color=FAINT)


def draw_shares(axes: Axes, title: str, rows: Sequence[Row]) -> None:
    """One bar of a hundred percent for each row, largest group on top."""
    bare(axes, title)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    at = range(len(rows))
    start = [0.0] * len(rows)
    for status, (_, colour) in STATUSES.items():
        shares = [100 * row[status] / row["flights"] for row in rows]
        axes.barh(at, shares, left=start, height=0.72, color=colour)
        for place, (left, value) in enumerate(zip(start, shares, strict=True)):
            if value >= 11:  # room for two digits
                dark = status in ("on_time", "late")
                axes.text(left + value / 2, place, f"{value:.0f} %", ha="center", va="center",
                          size=8.5, color=INK if dark else "white")  # fmt: skip
        start = [left + value for left, value in zip(start, shares, strict=True)]
    labels = [f"{row['name']}  {row['flights']}" for row in rows]
    axes.set_yticks(at, labels, color=INK)
    axes.set_xticks(())
    axes.set_xlim(0, 100)
    axes.set_ylim(len(rows) - 0.5, -0.5)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Draw one day of departures.")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="YYYY-MM-DD")
    parser.add_argument("--output", required=True, type=Path, help="folder of the results")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    folder = args.output / args.date.isoformat()
    try:
        report = json.loads((folder / "report.json").read_text("utf-8"))
    except FileNotFoundError as error:
        raise SystemExit(f"picture: {error.filename} is missing; run report first") from None
    partial = folder / ".report.png.partial"  # a reader never meets half a picture
    picture(report).savefig(partial, format="png", dpi=DPI)
    partial.replace(folder / "report.png")
    print(f"{report['title']}: drawn to {folder / 'report.png'}")


if __name__ == "__main__":
    main()
