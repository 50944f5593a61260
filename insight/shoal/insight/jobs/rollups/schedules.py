"""In which minutes schedules fire, how late their runs start, and which of them to move."""

import numpy as np
import pyarrow as pa

from shoal.insight.jobs.columns import (
    DAY_US,
    chosen,
    dates,
    number_of,
    optional,
    result_schema,
    schema_of,
    seconds,
    table_of,
    within,
)
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.arrays import compressed, groups, ints, is_one_of, is_there, numbers
from shoal.insight.jobs.kernels.moves import MINUTES, moves
from shoal.insight.jobs.kernels.statistics import Ints, quantiles
from shoal.insight.jobs.rows.parts import RowsPart

WINDOW_DAYS = 28
_MINUTE_US = 60_000_000
_HOUR_MINUTES = 60
_HOT = 20  # minutes at most
_HOT_TIMES = 3.0  # the average of all minutes
MINUTES_SCHEMA = result_schema("schedule_minutes")
MOVES_SCHEMA = result_schema("schedule_moves")
FIRED_SCHEMA = schema_of(
    "schedule_id bigint, project string, workflow string, number int, minute int, skew_s double"
)


def fired(part: RowsPart, days: Days) -> pa.Table:
    """Return the runs of schedules that ended in the 28 days that end with the last one.

    With the ``minute`` (of the day) and the day's ``number`` of their logical time, and the seconds
    from there to their start, ``skew_s``.
    """
    rows = part.instances(
        *("project", "workflow", "schedule_id", "trigger", "logical_time", "started_at"),
        "finished_at",
    )
    is_near = within(rows, "finished_at", days.up_to_last(WINDOW_DAYS))
    by_schedule = is_one_of(rows, "trigger", "schedule") & is_there(rows, "schedule_id")
    rows = chosen(rows, is_near & by_schedule)
    at = ints(rows, "logical_time")
    return table_of(
        FIRED_SCHEMA,
        schedule_id=ints(rows, "schedule_id"),
        project=rows["project"].combine_chunks().cast(pa.string()),
        workflow=rows["workflow"].combine_chunks().cast(pa.string()),
        number=at // DAY_US,
        minute=at // _MINUTE_US % MINUTES,
        skew_s=optional(seconds(rows, "logical_time", "started_at")),
    )


def schedule_minutes(fires: pa.Table, days: Days) -> pa.Table:
    """Return, as of the last of the days, a row for each minute in which schedules fired.

    ``fires``: ``fired`` of all parts. ``scope`` ``day``: ``minute`` 0 to 1439 of the day, UTC;
    ``hour``: 0 to 59 of any hour. ``starts_mean`` is by day, ``starts_max`` the most on one;
    ``skew``: seconds from the logical time to the start of the run. ``is_hot``: among the 20
    fullest of the day and thrice as full as the average minute.
    """
    minute = ints(fires, "minute")
    of_day = _minutes(fires, minute, MINUTES, "day", days)
    starts = np.bincount(minute, minlength=MINUTES)
    fullest = np.argsort(-starts, kind="stable")[:_HOT]
    hot = fullest[starts[fullest] >= max(1.0, _HOT_TIMES * len(minute) / MINUTES)]
    is_hot = np.isin(ints(of_day, "minute"), hot)
    at = of_day.column_names.index("is_hot")
    return pa.concat_tables(
        [
            of_day.set_column(at, MINUTES_SCHEMA.field("is_hot"), pa.array(is_hot)),
            _minutes(fires, minute % _HOUR_MINUTES, _HOUR_MINUTES, "hour", days),
        ]
    )


def _minutes(fires: pa.Table, minute: Ints, count: int, scope: str, days: Days) -> pa.Table:
    """Return the rows of a scope, none of them hot."""
    number, known_days = compressed(*_from_zero(ints(fires, "number")))
    by_day = np.bincount(minute * known_days + number, minlength=count * known_days)
    by_day = by_day.reshape(count, known_days)
    _, skews = quantiles(minute, numbers(fires, "skew_s"), count, (0.5, 0.95, 1.0))
    seen = np.flatnonzero(np.bincount(minute, minlength=count))
    return table_of(
        MINUTES_SCHEMA,
        day=dates(np.full(len(seen), number_of(days.last))),
        scope=pa.array([scope] * len(seen), pa.string()),
        minute=seen,
        starts_mean=by_day[seen].sum(axis=1) / max(1, known_days),
        starts_max=by_day[seen].max(axis=1, initial=0),
        **{
            f"skew_{name}_s": optional(one[seen])
            for name, one in zip(("p50", "p95", "max"), skews, strict=True)
        },
        is_hot=np.zeros(len(seen), dtype=bool),
    )


def _from_zero(values: Ints) -> tuple[Ints, int]:
    low = int(values.min()) if len(values) else 0
    return values - low, int(values.max(initial=low)) - low + 1


def schedule_moves(fires: pa.Table, days: Days) -> pa.Table:
    """Return, as of the last of the days, the schedules to move, the most useful first.

    ``fires``: ``fired`` of all parts. ``minute`` (of the day) is relieved if the schedule fires
    ``move_min`` minutes later (negative: earlier). ``highest_before`` and ``highest_after``: the
    most starts that are to be expected in one minute, without and with this move and all of a lower
    ``place``. Only schedules that fire at most 48 times a day are moved, by 15 minutes at most.
    """
    known_days = max(1, len(np.unique(ints(fires, "number"))))
    first, group = groups(fires, ("schedule_id", "minute"))
    starts = np.bincount(group, minlength=len(first)) / known_days
    by_schedule: dict[int, dict[int, float]] = {}
    schedules, minutes = ints(fires, "schedule_id")[first], ints(fires, "minute")[first]
    for schedule, minute, often in zip(
        schedules.tolist(), minutes.tolist(), starts.tolist(), strict=True
    ):
        by_schedule.setdefault(schedule, {})[minute] = often
    names = _names(fires)
    found = [
        {
            "day": days.last,
            "place": place,
            "schedule_id": move.schedule,
            "project": names[move.schedule][0],
            "workflow": names[move.schedule][1],
            "minute": move.minute,
            "move_min": move.minutes,
            "starts_per_day": sum(by_schedule[move.schedule].values()),
            "highest_before": move.before,
            "highest_after": move.after,
        }
        for place, move in enumerate(moves(by_schedule), 1)
    ]
    return pa.Table.from_pylist(found, MOVES_SCHEMA)


def _names(fires: pa.Table) -> dict[int, tuple[str, str]]:
    """Return project and workflow of each schedule; of several the greatest."""
    first, _ = groups(fires, ("schedule_id", "project", "workflow"))
    rows = fires.select(["schedule_id", "project", "workflow"]).take(pa.array(first))
    found: dict[int, tuple[str, str]] = {}
    for row in rows.to_pylist():
        schedule, *name = row.values()
        found[schedule] = max(found.get(schedule, ("", "")), (name[0], name[1]))
    return found
