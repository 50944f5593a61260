"""What each task used, by day and by the labels of its runs."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from shoal.insight.jobs.columns import (
    DAY_US,
    chosen,
    dates,
    result_schema,
    seconds,
    table_of,
    within,
)
from shoal.insight.jobs.days import LONGEST_DAYS, Days
from shoal.insight.jobs.kernels.arrays import (
    compressed,
    groups,
    ints,
    is_there,
    numbers,
    taken,
)
from shoal.insight.jobs.kernels.statistics import Ints, Numbers
from shoal.insight.jobs.rows.parts import RowsPart

SCHEMA = result_schema("costs")
_KEY = ("day", "project", "workflow", "task")
COLUMNS = (
    *("project", "workflow", "version", "instance_id", "task", "worker"),
    *("started_at", "finished_at", "cpu_s", "max_rss_kb"),
)
_KB_IN_GB = 1024 / 1e9
#: Values of a label that a workflow has rows of, of a day. A label that numbers runs has as many as
#: there are runs; results stay for a year.
MOST_VALUES = 100
OTHERS = "…"


def costs(part: RowsPart, days: Days, most_values: int = MOST_VALUES) -> pa.Table:
    """Return a row for each day, task and label, and one with an empty label for all its attempts.

    ``slot_s``: seconds in which attempts had a slot of a worker; ``memory_gb_s``: gigabytes (10**9
    bytes) of the highest resident memory times these seconds; ``cpu_s``: seconds of processors.
    What was not measured counts 0. A label with more than ``most_values`` values has one row for
    all of them, with the value ``…``. A run has its labels once it has ended, within 31 days of
    the attempt's end.
    """
    rows = part.attempts(*COLUMNS)
    rows = chosen(rows, within(rows, "finished_at", days) & is_there(rows, "worker"))
    rows = rows.append_column("day", dates(ints(rows, "finished_at") // DAY_US))
    first, key = groups(rows, _KEY)
    held_s = np.nan_to_num(seconds(rows, "started_at", "finished_at"))
    memory_kb = np.nan_to_num(numbers(rows, "max_rss_kb"))
    used = {
        "cpu_s": np.nan_to_num(numbers(rows, "cpu_s")),
        "memory_gb_s": memory_kb * held_s * _KB_IN_GB,
        "slot_s": held_s,
    }
    row, label, names, values = _labels(rows, part, days)
    _, of = groups(rows, ("day", "project", "workflow"))
    label, names, values = _folded(of[row], label, names, values, most_values)
    pairs, count = compressed(key[row] * len(names) + label, len(first) * len(names))
    of_pair = np.zeros(count, dtype=np.int64)
    of_pair[pairs] = np.arange(len(pairs))
    nothing = pa.array([""] * len(first), pa.string())
    return pa.concat_tables(
        [
            _rows(rows, first, nothing, nothing, key, used),
            _rows(
                rows,
                first[key[row]][of_pair],
                names.take(pa.array(label[of_pair])),
                values.take(pa.array(label[of_pair])),
                pairs,
                {name: one[row] for name, one in used.items()},
            ),
        ]
    )


def _rows(
    rows: pa.Table,
    first: Ints,
    label: pa.Array,
    value: pa.Array,
    group: Ints,
    used: Mapping[str, Numbers],
) -> pa.Table:
    return table_of(
        SCHEMA,
        **{name: taken(rows, name, first) for name in _KEY},
        label=label,
        value=value,
        attempts=np.bincount(group, minlength=len(first)),
        **{name: np.bincount(group, one, len(first)) for name, one in used.items()},
    )


def _labels(rows: pa.Table, part: RowsPart, days: Days) -> tuple[Ints, Ints, pa.Array, pa.Array]:
    """Return a row for each attempt and label of its run: which attempt, and which label.

    And the names and values of the labels.
    """
    runs = part.instances("instance_id", "version", "finished_at", "labels")
    runs = chosen(runs, within(runs, "finished_at", days.widened(after=LONGEST_DAYS)))
    order = np.argsort(ints(runs, "instance_id"))
    labels = runs["labels"].combine_chunks()
    keys, items = labels.keys.dictionary_encode(), labels.items.dictionary_encode()
    # Where there is no value the label has none.
    code = keys.indices.to_numpy() * (len(items.dictionary) + 1) + (
        items.indices.fill_null(len(items.dictionary)).to_numpy()
    )
    code, count = compressed(
        code.astype(np.int64), len(keys.dictionary) * (len(items.dictionary) + 1)
    )
    of_code = np.zeros(count, dtype=np.int64)
    of_code[code] = np.arange(len(code))
    offsets = labels.offsets.to_numpy().astype(np.int64)
    if not len(order):
        none = np.zeros(0, dtype=np.int64)
        return none, none, pa.nulls(0, pa.string()), pa.nulls(0, pa.string())
    known = ints(runs, "instance_id")[order]
    run = ints(rows, "instance_id")
    at = np.minimum(np.searchsorted(known, run), len(known) - 1)
    is_known = known[at] == run
    at = order[at]
    is_known &= ints(runs, "version")[at] == ints(rows, "version")
    sizes = np.where(is_known, offsets[at + 1] - offsets[at], 0)
    row = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + offsets[at][row]
    return (
        row,
        code[place],
        labels.keys.take(pa.array(of_code)),
        labels.items.take(pa.array(of_code)),
    )


def _folded(
    of: Ints, label: Ints, names: pa.Array, values: pa.Array, most_values: int
) -> tuple[Ints, pa.Array, pa.Array]:
    """Let all values of a label be one where there are too many; return labels, names, values.

    ``of``: the day and workflow of each label.
    """
    if not len(label):
        return label, names, values
    known = names.dictionary_encode()
    name_of, count = known.indices.to_numpy().astype(np.int64), len(known.dictionary)
    each = np.unique(of * len(names) + label)
    named, many = np.unique(
        each // len(names) * count + name_of[each % len(names)], return_counts=True
    )
    is_many = np.isin(of * count + name_of[label], named[many > most_values])
    return (
        np.where(is_many, len(names) + name_of[label], label),
        pa.concat_arrays([names, known.dictionary]),
        pa.concat_arrays([values, pa.array([OTHERS] * count, values.type)]),
    )
