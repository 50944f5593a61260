"""Which failures are the same one, since when there is each, and how often."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.core.runs.states import TaskState
from shoal.core.runs.why.fingerprints import fingerprint
from shoal.insight.jobs.columns import (
    DAY_US,
    chosen,
    dates,
    number_of,
    result_schema,
    table_of,
    within,
)
from shoal.insight.jobs.days import Days
from shoal.insight.jobs.kernels.arrays import groups, ints, is_one_of, taken
from shoal.insight.jobs.kernels.statistics import Ints
from shoal.insight.jobs.rows.parts import RowsPart

WINDOW_DAYS = 60
SCHEMA = result_schema("failures")
_KEY = ("fingerprint", "project", "workflow", "task")
COLUMNS = (
    *("project", "workflow", "task", "state", "attempt_id", "finished_at"),
    *("error_line", "reason", "fingerprint"),
)
_SAMPLE_CHARS = 500


def failures(part: RowsPart, days: Days) -> pa.Table:
    """Return a row for each day, fingerprint and task of which an attempt FAILED so on that day.

    ``count_day`` is of the day; ``count``, ``first_seen`` and ``last_seen`` are of the 60 days that
    end with it, so of two groups with the same fingerprint the sum is over all workflows.
    ``sample`` is the error line of the newest of the day. An attempt whose output had no error line
    goes by its reason.
    """
    rows = part.attempts(*COLUMNS)
    is_near = within(rows, "finished_at", days.widened(before=WINDOW_DAYS - 1))
    rows = fingerprinted(chosen(rows, is_near & is_one_of(rows, "state", TaskState.FAILED)))
    _, key = groups(rows, _KEY)
    finished = ints(rows, "finished_at")
    # The attempts of a key in the order of their ends: a day of a key is a stretch of them.
    order = np.lexsort((ints(rows, "attempt_id"), finished, key))
    key, finished = key[order], finished[order]
    number = finished // DAY_US
    starts = np.flatnonzero(
        np.append(True, (np.diff(key) != 0) | (np.diff(number) != 0))[: len(key)]
    )
    ends = np.append(starts[1:], len(key))
    since = _window_starts(key, number, starts)
    asked = number[starts]
    wanted = (number_of(days.first) <= asked) & (asked <= number_of(days.last))
    starts, ends, since = starts[wanted], ends[wanted], since[wanted]
    newest = order[ends - 1]
    line = pc.coalesce(rows["error_line"], rows["reason"], "").combine_chunks()
    return table_of(
        SCHEMA,
        day=dates(number[starts]),
        **{name: taken(rows, name, newest) for name in _KEY},
        sample=pc.utf8_slice_codeunits(line.take(pa.array(newest)), 0, _SAMPLE_CHARS),
        first_seen=finished[since],
        last_seen=finished[ends - 1],
        count=ends - since,
        count_day=ends - starts,
    )


def _window_starts(key: Ints, number: Ints, starts: Ints) -> Ints:
    """Return for each day of a key the first attempt of the 60 days that end with it."""
    if not len(key):
        return starts
    low = int(number.min()) - WINDOW_DAYS
    span = int(number.max()) - low + 1
    place = key * span + number - low
    return np.searchsorted(place, place[starts] - WINDOW_DAYS + 1)


def fingerprinted(failed: pa.Table) -> pa.Table:
    """Fill in ``fingerprint`` where there is none, from the reason, or else the error line.

    Reasons are few, however many have failed, so each is looked at once.
    """
    column = failed["fingerprint"]
    if column.null_count:
        reason = pc.coalesce(failed["reason"], failed["error_line"], "").combine_chunks()
        missing = pc.is_null(column)
        coded = pc.if_else(missing, reason, None).combine_chunks().dictionary_encode()
        texts = [fingerprint(one) for one in coded.dictionary.to_pylist()]
        named = pa.array(texts, pa.string()).take(coded.indices)
        filled = pc.coalesce(column, named)
        failed = failed.set_column(
            failed.column_names.index("fingerprint"), "fingerprint", filled
        ).combine_chunks()
    return failed
