"""``shoal timeline``: when the tasks of a run worked."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, InstanceId, Json

if TYPE_CHECKING:
    from rich.table import Table

    from shoal.client.rest.operations.generated.types import Bar, Timeline

_WIDTH = 40  # characters of the time axis
_CRITICAL, _OTHER, _QUEUED = "█", "▒", "·"


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Runs")(timeline)


def timeline(
    instance_id: InstanceId,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="Earlier attempts of each task as well.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show when the tasks of a run worked, and which of them made it last so long."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient
    from shoal.core.timing.durations import format_duration

    with ShoalClient.connect(data) as client:
        found = client.get_timeline(instance_id, every=every)
    if as_json:
        print_json(found)
        return
    out().print(timeline_table(found, datetime.now(UTC), out().width))
    if found["critical_path"]:
        path = " → ".join(found["critical_path"])
        say(f"critical: {path}, {format_duration(found['critical_s'])} of work")
    say(f"{_CRITICAL} critical  {_OTHER} other work  {_QUEUED} waits for a worker", "dim")


@dataclass(frozen=True)
class Span:
    """When an attempt was queued (or started, if that is unknown), started, and ended, so far."""

    began: datetime
    started: datetime | None
    ended: datetime


@dataclass(frozen=True)
class Axis:
    """The time that ``_WIDTH`` characters stand for, from ``start`` on."""

    start: datetime
    length: timedelta

    @classmethod
    def over(cls, moments: Iterable[datetime]) -> "Axis":
        """Return the axis on which all moments are; there must be some."""
        known = list(moments)
        return cls(min(known), max(known) - min(known))

    def place(self, moment: datetime) -> float:
        """Return how many characters from the left a moment is."""
        return _WIDTH * ((moment - self.start) / self.length) if self.length else 0.0


def timeline_table(found: "Timeline", now: datetime, width: int) -> "Table":
    """Return a line for each attempt, in the order in which they began, ``width`` wide."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock, lasted, state_text
    from shoal.client.cli.terminal.tables import TextTable

    spans = [(one, _span(one, now)) for one in found["bars"]]
    moments = [moment for _, span in spans if span for moment in (span.began, span.ended)]
    axis = Axis.over(moments) if moments else None
    never = datetime.max.replace(tzinfo=UTC)  # what has not begun comes last
    spans.sort(key=lambda pair: pair[1].began if pair[1] else never)
    shown = TextTable(["task", "attempt>", "state", "started", "queued>", "lasted>", "time"])
    for one, span in spans:
        left_queue = one["started_at"] or one["finished_at"]
        shown.add(
            Text(one["task"], "bold" if one["is_critical"] else ""),
            str(one["attempt"]) if one["attempt"] > 1 else "",
            state_text(one["state"]),
            Text(clock(one["started_at"], now), "dim"),
            Text(lasted(one["queued_at"], left_queue, now), "dim"),
            lasted(one["started_at"], one["finished_at"], now),
            bar_text(axis, span, is_critical=one["is_critical"]) if axis and span else "",
        )
    return shown.table(width, ("queued", "started", "attempt"))


def _span(one: "Bar", now: datetime) -> Span | None:
    from shoal.client.cli.terminal.appearance import parse_time

    queued, started = parse_time(one["queued_at"]), parse_time(one["started_at"])
    began = queued or started
    if began is None:
        return None
    # The clock of this machine may be behind those of the cluster.
    ended = max(parse_time(one["finished_at"]) or now, started or began)
    return Span(began, started, ended)


def bar_text(axis: Axis, span: Span, *, is_critical: bool) -> str:
    """Return an attempt as a bar on the axis; none is too short to be seen."""
    first = min(int(axis.place(span.began)), _WIDTH - 1)
    end = max(first + 1, ceil(axis.place(span.ended)))
    begin = end
    if span.started is not None:
        begin = max(first, min(int(axis.place(span.started)), end - 1))
    work = _CRITICAL if is_critical else _OTHER
    return " " * first + _QUEUED * (begin - first) + work * (end - begin)
