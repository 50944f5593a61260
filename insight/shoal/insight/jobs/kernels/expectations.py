"""What durations are to be expected at which hour: baselines, and how well they predict.

A baseline is of an hour of a weekday if there are values enough, else of the hour on any day, of
the weekday, or of any time: the first that has ``ENOUGH`` values counts.
"""

from dataclasses import dataclass

import numpy as np

from shoal.insight.jobs.kernels.arrays import compressed
from shoal.insight.jobs.kernels.statistics import Ints, Numbers, spreads

ENOUGH = 20
ANY = -1  # of a weekday or an hour
_WEEKDAYS, _HOURS = 7, 24


@dataclass(frozen=True)
class BaselineArrays:
    """Baselines of some subjects, each array with a value for each of them.

    ``weekday``: 0 is Monday. ``number``: of values. The one of any time is there in any case.
    """

    subject: Ints
    weekday: Ints
    hour: Ints
    number: Ints
    p50: Numbers
    p95: Numbers
    mad: Numbers


def late_after(p50: Numbers, p95: Numbers, mad: Numbers) -> Numbers:
    """Return after which time a run or a task is late, compared with its baseline."""
    return np.maximum(1.5 * p95, p50 + 3 * mad)


def baselines(subject: Ints, weekday: Ints, hour: Ints, values: Numbers) -> BaselineArrays:
    """Return the baselines of all subjects that have a value; NaN is none."""
    known = ~np.isnan(values)
    subject, weekday, hour = subject[known], weekday[known], hour[known]
    values = values[known]
    everything = np.full_like(subject, ANY)
    parts = [
        _level(subject, *level, values)
        for level in (
            (weekday, hour),
            (everything, hour),
            (weekday, everything),
            (everything, everything),
        )
    ]
    return BaselineArrays(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("subject", "weekday", "hour", "number", "p50", "p95", "mad")
        )
    )


def _level(subject: Ints, weekday: Ints, hour: Ints, values: Numbers) -> BaselineArrays:
    code = _code(subject, weekday, hour)
    group, count = compressed(code, int(code.max(initial=-1)) + 1)
    codes = np.zeros(count, dtype=np.int64)
    codes[group] = code
    sizes = np.bincount(group, minlength=count)
    is_last = bool(len(weekday)) and weekday[0] == ANY and hour[0] == ANY
    kept = sizes >= (1 if is_last else ENOUGH)
    # The values of groups that are too small are not even sorted.
    used = kept[group]
    place = np.cumsum(kept) - 1
    keys, values, codes = place[group[used]], values[used], codes[kept]
    number, (p50, p95), mad = spreads(keys, values, len(codes), (0.5, 0.95))
    return BaselineArrays(
        subject=codes // ((_WEEKDAYS + 1) * (_HOURS + 1)),
        weekday=codes // (_HOURS + 1) % (_WEEKDAYS + 1) + ANY,
        hour=codes % (_HOURS + 1) + ANY,
        number=number,
        p50=p50,
        p95=p95,
        mad=mad,
    )


def _code(subject: Ints, weekday: Ints, hour: Ints) -> Ints:
    """Return one number for a subject, a weekday and an hour."""
    return (subject * (_WEEKDAYS + 1) + weekday - ANY) * (_HOURS + 1) + hour - ANY


def chosen(known: BaselineArrays, subject: Ints, weekday: Ints, hour: Ints) -> Ints:
    """Return which of the baselines counts for each subject, weekday and hour; -1: none."""
    codes = _code(known.subject, known.weekday, known.hour)
    order = np.argsort(codes)
    found = np.full(len(subject), -1, dtype=np.int64)
    if not len(codes):
        return found
    everything = np.full_like(subject, ANY)
    for level in (
        (weekday, hour),
        (everything, hour),
        (weekday, everything),
        (everything, everything),
    ):
        wanted = _code(subject, *level)
        at = order[np.minimum(np.searchsorted(codes, wanted, sorter=order), len(codes) - 1)]
        found = np.where((found < 0) & (codes[at] == wanted), at, found)
    return found
