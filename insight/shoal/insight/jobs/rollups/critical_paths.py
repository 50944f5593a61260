"""Which tasks the end of each run has waited for, and what shortening them would gain."""

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.insight.jobs.columns import (
    DAY_US,
    chosen,
    dates,
    end_us,
    schema_of,
    start_us,
    table_of,
    within,
)
from shoal.insight.jobs.days import LONGEST_DAYS, Days
from shoal.insight.jobs.kernels.arrays import coded, groups, ints, is_there
from shoal.insight.jobs.kernels.paths import PlanGraph
from shoal.insight.jobs.kernels.paths import critical_paths as paths_of
from shoal.insight.jobs.kernels.statistics import Ints
from shoal.insight.jobs.rows.parts import RowsPart

SCHEMA = schema_of(
    "day date, project string, workflow string, instance_id bigint, place int, task string, "
    "attempt_id bigint, attempt bigint, wait_s double, own_s double, gain_s double"
)
_PLAN = ("project", "workflow", "version")
COLUMNS = (*_PLAN, "instance_id", "task", "attempt_id", "attempt", "started_at", "finished_at")
_OF_RUN = (*_PLAN, "instance_id", "created_at", "admitted_at", "started_at", "finished_at")
#: Cells (tasks x runs) that are computed at once: some tens of megabytes.
_MOST_CELLS = 200_000
_SECOND = 1_000_000
_Version = tuple[str, str, int]  # project, workflow, version


def critical_paths(part: RowsPart, days: Days) -> pa.Table:
    """Return a row for each link of the path of each run that ended on one of the days.

    A link is the newest attempt of a task that ran. From the task that ended last (of equals that
    with the greater name) the path goes back to the one before it that ended last, and so on;
    ``place`` 1 is the first. ``wait_s`` is what lies between the end of the link before, or the
    start of the run, and the start of the attempt, earlier attempts of the task included; it is
    less than 0 by at most the two seconds by which clocks may differ. ``gain_s`` is how much
    earlier the run would have ended had this attempt taken no time, all others as long as they
    did, and all waits as well. A run whose plan is not known has no rows.

    Attempts that ended more than 31 days before the first of the days are not seen.
    """
    name = f"critical_paths-{days.first}-{days.last}"
    return part.kept(name, SCHEMA, lambda: _computed(part, days))


def _computed(part: RowsPart, days: Days) -> pa.Table:
    runs = part.instances(*_OF_RUN)
    runs = chosen(runs, within(runs, "finished_at", days))
    rows = part.attempts(*COLUMNS)
    if not runs.num_rows or not rows.num_rows:
        return SCHEMA.empty_table()
    rows = _of_runs(rows, runs, days)
    plans = {
        (row["project"], row["workflow"], row["version"]): {
            task["name"]: task["upstream"] or [] for task in row["tasks"]
        }
        for row in part.plans().to_pylist()
    }
    return pa.concat_tables([SCHEMA.empty_table(), *_walked(rows, plans)])


def _of_runs(rows: pa.Table, runs: pa.Table, days: Days) -> pa.Table:
    """Return the attempts of some runs, with when their run ``_begun`` and ``_ended``."""
    order = np.argsort(ints(runs, "instance_id"))
    known = ints(runs, "instance_id")[order]
    run = ints(rows, "instance_id")
    at = np.minimum(np.searchsorted(known, run), len(known) - 1)
    finished = ints(rows, "finished_at")
    first = start_us(days.widened(before=LONGEST_DAYS).first)
    ended = ints(runs, "finished_at")[order]
    is_seen = (known[at] == run) & (finished >= first) & (finished < end_us(days.last))
    is_seen &= ints(rows, "version") == ints(runs, "version")[order][at]
    begun = ints(runs, "created_at")
    for name in ("admitted_at", "started_at"):
        begun = np.where(is_there(runs, name), ints(runs, name), begun)
    rows = rows.append_column("_begun", pa.array(begun[order][at]))
    return chosen(rows.append_column("_ended", pa.array(ended[at])), is_seen)


def _walked(
    rows: pa.Table, plans: Mapping[_Version, Mapping[str, Sequence[str]]]
) -> Iterator[pa.Table]:
    """Yield the links of runs, which are in the order of plans and runs; many runs at once."""
    first, version = groups(rows, _PLAN)
    names = [rows[name].take(pa.array(first)).to_pylist() for name in _PLAN]
    runs = ints(rows, "instance_id")
    is_start = (np.diff(runs, prepend=-1) != 0) | (np.diff(version, prepend=-1) != 0)
    starts = np.append(np.flatnonzero(is_start), len(runs))
    of_run = version[starts[:-1]]
    bounds = np.flatnonzero(np.diff(of_run, prepend=-1, append=-1))
    for low, high in pairwise(bounds.tolist()):
        key: _Version = tuple(one[of_run[low]] for one in names)
        plan = _ordered(plans.get(key))
        if plan is None:
            continue
        most = max(1, _MOST_CELLS // max(1, len(plan.names)))
        for at in range(low, high, most):
            begin, end = starts[at], starts[min(at + most, high)]
            yield _links(plan, key, rows.slice(begin, end - begin))


def _ordered(upstream: Mapping[str, Sequence[str]] | None) -> PlanGraph | None:
    """Return a plan in order; None: unknown, or none that could have run."""
    if upstream is None:
        return None
    try:
        return PlanGraph.of(upstream)
    except CycleError:
        return None


def _links(plan: PlanGraph, key: _Version, table: pa.Table) -> pa.Table:
    """Return the rows of some runs of a plan."""
    place = _places(plan, table)
    table = chosen(table, place >= 0)
    place = place[place >= 0]
    attempt, started = ints(table, "attempt"), ints(table, "started_at")
    finished, has_started = ints(table, "finished_at"), is_there(table, "started_at")
    ids, first, run = np.unique(ints(table, "instance_id"), return_index=True, return_inverse=True)
    begun, ended = ints(table, "_begun")[first], ints(table, "_ended")[first]
    shape = len(plan.names), len(ids)
    # Of a task that ran several times the newest attempt counts: later rows overwrite earlier ones.
    order = np.argsort(attempt, kind="stable")
    row = np.full(shape, -1, dtype=np.int64)
    row[place[order], run[order]] = order
    ran = (row >= 0) & has_started[row] if len(order) else np.zeros(shape, dtype=bool)
    since = np.where(ran, started[row] - begun, 0) if len(order) else np.zeros(shape, np.int64)
    until = np.where(ran, finished[row] - begun, 0) if len(order) else np.zeros(shape, np.int64)
    links = paths_of(plan, since, np.maximum(since, until), ran)
    of = row[links.task, links.run]
    project, workflow, _ = key
    return table_of(
        SCHEMA,
        day=dates(ended[links.run] // DAY_US),
        project=pa.array([project] * len(of), pa.string()),
        workflow=pa.array([workflow] * len(of), pa.string()),
        instance_id=ids[links.run],
        place=links.place,
        task=pa.array(plan.names, pa.string()).take(pa.array(links.task)),
        attempt_id=ints(table, "attempt_id")[of],
        attempt=attempt[of],
        wait_s=links.wait / _SECOND,
        own_s=links.own / _SECOND,
        gain_s=links.gain / _SECOND,
    )


def _places(plan: PlanGraph, table: pa.Table) -> Ints:
    """Return the position of each row's task in the plan; -1: it is not in it."""
    codes, names = coded(table, "task")
    places = pc.index_in(names, value_set=pa.array(plan.names, pa.string()))
    return np.asarray(pc.fill_null(places, -1).to_numpy().astype(np.int64)[codes])
