"""Which tasks the end of each run has waited for, and what shortening them would gain."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shoal.insight.jobs.columns import DAY_US, end_of, micros, start_of, within
from shoal.insight.jobs.days import LONGEST_DAYS, Days
from shoal.insight.jobs.kernels.batches import codes
from shoal.insight.jobs.kernels.paths import Plan
from shoal.insight.jobs.kernels.paths import critical_paths as paths_of

_RUN = ("project", "workflow", "version", "instance_id")
_SCHEMA = (
    "day date, project string, workflow string, instance_id bigint, place int, task string, "
    "attempt_id bigint, attempt bigint, wait_s double, own_s double, gain_s double"
)
#: Cells (tasks x runs) that are computed at once: some tens of megabytes.
_MOST_CELLS = 200_000
_SECOND = 1_000_000
_Version = tuple[str, str, int]  # project, workflow, version


def critical_paths(
    attempts: DataFrame, instances: DataFrame, plans: DataFrame, days: Days
) -> DataFrame:
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
    known = {
        (row.project, row.workflow, row.version): {
            task["name"]: task["upstream"] or [] for task in row.tasks
        }
        for row in plans.join(
            instances.where(within("finished_at", days)).select(*_RUN[:3]).distinct(),
            list(_RUN[:3]),
            "left_semi",
        ).collect()
    }
    runs = instances.where(within("finished_at", days)).select(
        *_RUN,
        micros("finished_at").alias("_run_finished"),
        F.coalesce(micros("started_at"), micros("admitted_at"), micros("created_at")).alias(
            "_begun"
        ),
    )
    first = start_of(days.widened(before=LONGEST_DAYS).first)
    rows = (
        attempts.where(
            (F.col("finished_at") >= F.lit(first))
            & (F.col("finished_at") < F.lit(end_of(days.last)))
        )
        .select(
            *_RUN,
            "task",
            "attempt_id",
            "attempt",
            micros("started_at").alias("_started"),
            micros("finished_at").alias("_finished"),
        )
        .join(runs.hint("shuffle_hash"), list(_RUN))
        .repartition("project", "workflow")
        .sortWithinPartitions("instance_id")
    )
    return rows.mapInArrow(_Walk(known), _SCHEMA)


@dataclass(frozen=True)
class _Walk:
    """Goes through a partition that is sorted by run, many runs of one plan at once.

    ``plans``: names of the tasks before each task, by project, workflow and version.
    """

    plans: Mapping[_Version, Mapping[str, Sequence[str]]]
    _ordered: dict[_Version, Plan | None] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        left: pa.Table | None = None
        for batch in batches:
            table = pa.Table.from_batches([batch])
            if left is not None:
                table = pa.concat_tables([left, table])
            if not table.num_rows:
                continue
            # The last run may go on in the next batch.
            runs = table["instance_id"].to_numpy()
            complete = int(np.flatnonzero(np.diff(runs, prepend=runs[0] - 1))[-1])
            left = table.slice(complete)
            yield from self._walk(table.slice(0, complete))
        if left is not None:
            yield from self._walk(left)

    def _walk(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the links of complete runs."""
        if not table.num_rows:
            return
        _, version = codes(table, _RUN[:3])
        table = table.take(pa.array(np.argsort(version, kind="stable")))
        runs = table["instance_id"].to_numpy()
        starts = np.flatnonzero(np.diff(runs, prepend=runs[0] - 1))
        versions = [table[name].take(pa.array(starts)).to_pylist() for name in _RUN[:3]]
        keys = list(zip(*versions, strict=True))
        at = 0
        while at < len(starts):
            plan = self._plan(keys[at])
            most = max(1, _MOST_CELLS // max(1, len(plan.names))) if plan else len(starts)
            to = at + 1
            while to < len(starts) and keys[to] == keys[at] and to - at < most:
                to += 1
            if plan is not None:
                end = starts[to] if to < len(starts) else table.num_rows
                yield _links(plan, keys[at], table.slice(starts[at], end - starts[at]))
            at = to

    def _plan(self, key: _Version) -> Plan | None:
        """Return a plan in order; None: unknown, or none that could have run."""
        if key not in self._ordered:
            try:
                self._ordered[key] = Plan.of(self.plans[key])
            except (KeyError, CycleError):
                self._ordered[key] = None
        return self._ordered[key]


def _links(plan: Plan, key: _Version, table: pa.Table) -> pa.RecordBatch:
    """Return the rows of some runs of a plan."""
    places = pc.index_in(table["task"], value_set=pa.array(plan.names))
    table = table.append_column("place", places).filter(pc.is_valid(places))
    columns = {
        name: table[name].to_numpy()
        for name in ("instance_id", "_begun", "_run_finished", "attempt_id", "attempt", "place")
    }
    finished = table["_finished"].to_numpy()
    has_started = pc.is_valid(table["_started"]).to_numpy()
    started = pc.fill_null(table["_started"], 0).to_numpy()
    ids, first, run = np.unique(columns["instance_id"], return_index=True, return_inverse=True)
    begun, ended = columns["_begun"][first], columns["_run_finished"][first]
    shape = len(plan.names), len(ids)
    # Of a task that ran several times the newest attempt counts: later rows overwrite earlier ones.
    order = np.argsort(columns["attempt"], kind="stable")
    row = np.full(shape, -1, dtype=np.int64)
    row[columns["place"][order], run[order]] = order
    ran = (row >= 0) & has_started[row] if len(order) else np.zeros(shape, dtype=bool)
    since = np.where(ran, started[row] - begun, 0) if len(order) else np.zeros(shape, np.int64)
    until = np.where(ran, finished[row] - begun, 0) if len(order) else np.zeros(shape, np.int64)
    links = paths_of(plan, since, np.maximum(since, until), ran)
    of = row[links.task, links.run]
    count = len(of)
    return pa.RecordBatch.from_arrays(
        [
            pa.array((ended[links.run] // DAY_US).astype(np.int32)).cast(pa.date32()),
            pa.array([key[0]] * count, pa.string()),
            pa.array([key[1]] * count, pa.string()),
            pa.array(ids[links.run]),
            pa.array(links.place.astype(np.int32)),
            pa.array(plan.names, pa.string()).take(pa.array(links.task)),
            pa.array(columns["attempt_id"][of]),
            pa.array(columns["attempt"][of]),
            *(pa.array(times / _SECOND) for times in (links.wait, links.own, links.gain)),
        ],
        names=[field.split()[0] for field in _SCHEMA.split(", ")],
    )
