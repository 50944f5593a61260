"""What workflows did: runs by day, what got slower, waits, failures, lateness, costs."""

from collections.abc import Iterator
from html import escape

from shoal.insight.pages.charts import ChartColumn, bar, columns, sparkline
from shoal.insight.pages.document import Cell, Markup, Section, folded, table
from shoal.insight.report.answers import Answer, Collected, waited_s
from shoal.insight.report.words import hours, length, number, plural, share, times

_KEY = (
    '<p class="key"><span><i class="b"></i>succeeded</span><span><i class="r"></i>failed</span>'
    '<span><i class="o"></i>stopped</span></p>'
)
_WAIT_KEY = (
    '<p class="key"><span><i class="b"></i>for the admission</span>'
    '<span><i class="o"></i>for a worker</span></p>'
)
_MOST_PLACES = 5


def sections(found: Collected) -> Iterator[Section]:
    """Yield the sections that have something to show, and those of which it is good news."""
    yield _runs(found)
    yield _slower(found)
    yield _failures(found)
    yield _late(found)
    yield _waits(found)
    yield _costs(found)


def name_of(one: Answer) -> str:
    """Return what a workflow is called."""
    return f"{one['project']}/{one['workflow']}"


def _runs(found: Collected) -> Section:
    summary = found.summary
    total, daily = summary["total"], summary["daily"]
    told = (
        f"{plural(total['runs'], 'run')}: {number(total['succeeded'])} succeeded, "
        f"{number(total['failed'])} failed, {number(total['stopped'])} stopped."
    )
    drawn = columns(
        "runs",
        "Runs by day",
        told,
        [
            ChartColumn(
                day["day"][5:],
                f"{day['day']}: {plural(day['runs'], 'run')}, {day['failed']:,} failed, "
                f"{day['stopped']:,} stopped, {day['late']:,} late",
                [(kind, day[kind]) for kind in ("succeeded", "failed", "stopped")],
            )
            for day in daily
        ],
    )
    head = ["day", "runs", "failed", "late", "attempts", "retries", "mean wait", "time of tasks"]
    rows = [
        [
            day["day"],
            number(day["runs"]),
            number(day["failed"]),
            number(day["late"]),
            number(day["attempts"]),
            number(day["retries"]),
            length(day["wait_mean_s"]),
            hours(day["busy_s"]),
        ]
        for day in daily
    ]
    body = [f"<figure>{drawn}<figcaption>{_KEY}</figcaption></figure>"]
    body += folded("Day by day, as a table", "What ended on each day", head, rows)
    return Section("runs", "Runs by day", told, body)


def _slower(found: Collected) -> Section:
    some = found.got_slower
    heading = "What got slower"
    if not some:
        lead = "No workflow's median duration has grown by more than a tenth."
        return Section("slower", heading, lead, [])
    most = max(max(one["now"]["duration_p50_s"], _before(one) or 0.0) for one in some)
    rows: list[list[Cell]] = []
    for one in some:
        now, before = one["now"]["duration_p50_s"], _before(one)
        told = f"{length(before)} before, {length(now)} now"
        by_day = [day["duration_p50_s"] for day in one["daily"]]
        grown = [("admission", before or 0.0), ("failed", now - (before or 0.0))]
        rows.append(
            [
                name_of(one),
                bar(grown, most, told),
                length(before),
                length(now),
                Markup(f'<span class="bad">+{escape(length(one["duration_change_s"]))}</span>'),
                times(one["duration_ratio"]),
                sparkline(by_day, f"{name_of(one)}: median duration by day"),
            ]
        )
    lead = f"{plural(len(some), 'workflow')} of those that changed most: medians of durations."
    head = ["workflow", "how it has grown", "before", "now", "longer by", "", "by day"]
    return Section(
        "slower", heading, lead, [*table("Those that grew by most come first", head, rows)]
    )


def _failures(found: Collected) -> Section:
    groups, total = found.failures["items"], found.failures["total"]
    if not total:
        return Section("failures", "What fails", "No attempt has failed.", [])
    lead = f"{plural(total, 'attempt')} failed. Those with the same error are one group."
    days = [day["day"] for day in found.summary["daily"]]
    body = []
    for one in groups:
        counts = {day["day"]: day["count"] for day in one["by_day"]}
        line = sparkline([counts.get(day, 0) for day in days], "Failures by day", "spark")
        places = [
            f"{name_of(place)}: {place['task']} ({place['count']:,})"
            for place in one["where"][:_MOST_PLACES]
        ]
        more = len(one["where"]) - _MOST_PLACES
        places += [f"{more} more"] if more > 0 else []
        seen = f"First seen {(one['first_seen'] or '')[:10]}, last {(one['last_seen'] or '')[:16]}"
        body.append(
            f'<article class="failure"><span class="count">{one["count"]:,}×</span>'
            f"<pre>{escape(one['sample'] or 'no error line')}</pre>{line.html}"
            f"<p>{escape(', '.join(places))}</p>"
            f"<p>{escape(seen.replace('T', ' '))}, in {plural(one['workflows'], 'workflow')}</p>"
            "</article>"
        )
    return Section("failures", "What fails", lead, body)


def _late(found: Collected) -> Section:
    some = found.were_late
    if not some:
        return Section("late", "What was late", "No run has missed its deadline.", [])
    rows = [
        [
            name_of(one),
            number(one["now"]["late"]),
            number(one["now"]["runs"]),
            share(one["now"]["late_rate"]),
            share(one["before"]["late_rate"]),
            length(one["now"]["duration_p95_s"]),
        ]
        for one in some
    ]
    total = found.summary["total"]
    lead = f"{plural(total['late'], 'run')} of {total['runs']:,} missed a deadline."
    head = ["workflow", "late", "runs", "share", "before", "duration p95"]
    return Section("late", "What was late", lead, [*table("The most first", head, rows)])


def _waits(found: Collected) -> Section:
    some = found.waiting
    if not some:
        lead = "No workflow waits for more than a second, neither for its turn nor for a worker."
        return Section("waits", "What waits", lead, [])
    most = max(waited_s(one["now"]) for one in some)
    rows: list[list[Cell]] = []
    for one in some:
        now = one["now"]
        admission, queue = now["admission_mean_s"] or 0.0, now["wait_mean_s"] or 0.0
        told = f"{length(admission)} for the admission, {length(queue)} for a worker"
        rows.append(
            [
                name_of(one),
                bar([("admission", admission), ("queue", queue)], most, told),
                length(now["admission_mean_s"]),
                length(now["wait_mean_s"]),
                length(now["wait_p95_s"]),
                length(waited_s(one["before"])),
            ]
        )
    lead = "How long a run waits for its admission, and an attempt for a worker, on average."
    head = ["workflow", "waits", "admission", "worker", "worker p95", "both before"]
    body = [_WAIT_KEY, *table("Those that wait longest come first", head, rows)]
    return Section("waits", "What waits", lead, body)


def _costs(found: Collected) -> Section:
    costs = found.costs
    total = costs["total"]
    if not total["slot_s"]:
        return Section("costs", "What was used", "Nothing was measured.", [])
    lead = (
        f"{hours(total['slot_s'])} of slots, {hours(total['cpu_s'])} of processors and "
        f"{total['memory_gb_s'] / 3600:,.1f} GB·h of memory; "
        f"{hours(costs['before']['slot_s'])} of slots before."
    )
    rows: list[list[Cell]] = []
    for one in costs["items"]:
        part = share(one["share"])
        rows.append(
            [
                name_of(one),
                bar([("admission", one["share"] or 0.0)], 1.0, part),
                part,
                hours(one["now"]["slot_s"]),
                hours(one["before"]["slot_s"]),
                hours(one["now"]["cpu_s"]),
                f"{one['now']['memory_gb_s'] / 3600:,.1f} GB·h",
            ]
        )
    head = ["workflow", "of all slots", "", "slots", "before", "processors", "memory"]
    return Section("costs", "What was used", lead, [*table("The most first", head, rows)])


def _before(one: Answer) -> float | None:
    value: float | None = one["before"]["duration_p50_s"]
    return value
