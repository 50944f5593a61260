"""Schedules as Python authors write them."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from shoal.client.sdk.arguments import check_fields
from shoal.core.definition.fields import scalar_text

Moment: TypeAlias = str | dt.date | dt.datetime  # without an offset: in the schedule's time zone


@dataclass(frozen=True)
class Schedule:
    """A timetable: a cron expression (Quartz or Unix) and how its runs start.

    What is None is as the workflow says it, or as the kind of expression does.
    """

    cron: str
    timezone: str | None = None
    parameters: Mapping[str, str | int | float | bool | dt.date] = field(default_factory=dict)
    enabled: bool = True
    priority: Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"] | None = None
    on_gap: Literal["shift", "skip"] | None = None
    on_overlap: Literal["first", "last", "both"] | None = None
    start: Moment | None = None
    end: Moment | None = None  # no fire time from then on
    exclude: Sequence[str | dt.date] = ()
    calendar: str | None = None
    missed: Literal["skip", "last", "all"] = "last"
    missed_window: str | int | float | dt.timedelta | None = None  # "2h", seconds, a timedelta

    def __post_init__(self) -> None:
        check_fields(self)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, without what is left at its default."""
        given: dict[str, Any] = {
            "timezone": self.timezone,
            "parameters": {key: scalar_text(value) for key, value in self.parameters.items()},
            "enabled": None if self.enabled else False,
            "priority": self.priority,
            "on_gap": self.on_gap,
            "on_overlap": self.on_overlap,
            "start": scalar_text(self.start),
            "end": scalar_text(self.end),
            "exclude": [scalar_text(day) for day in self.exclude],
            "calendar": self.calendar,
            "missed": None if self.missed == "last" else self.missed,
            "missed_window": self.missed_window,
        }
        if isinstance(self.missed_window, dt.timedelta):
            given["missed_window"] = self.missed_window.total_seconds()
        return {"cron": self.cron} | {
            key: value for key, value in given.items() if value not in (None, {}, [])
        }
