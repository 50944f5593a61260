"""One page to look at: what each pool did hour by hour, with the figures beside it.

The page needs nothing else: no script, no network. It follows the reader's light or dark setting,
prints, and says in words and tables what its charts show.
"""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from shoal.core.timing.durations import format_duration
from shoal.insight.pages import document
from shoal.insight.pages.document import table
from shoal.insight.simulate.result import (
    HourOfPool,
    PoolResult,
    SimulationResult,
    WorkflowResult,
)

_WIDTH, _HEIGHT = 960, 150  # of a plot, in units of its own
_LEFT, _TOP = 72, 12
_MOST_WORKFLOWS = 50  # in the table
_MOST_TICKS = 8


def write(result: SimulationResult, path: Path) -> None:
    """Write the page to a file. Raises PageNotWritten."""
    document.write(page(result), path)


def page(result: SimulationResult) -> str:
    """Return the page as HTML."""
    title = f"Simulation from {_time(result.start)} to {_time(result.end)}"
    return document.document(
        title,
        [
            f"<h1>{escape(title)}</h1>",
            f'<p class="dim">{result.runs:,} runs, {result.attempts:,} attempts, seed '
            f"{result.seed}. All times are UTC.</p>",
            *_bottleneck(result),
            *_pools("Worker groups", "worker group", result.groups, result.limit_s),
            *_pools("Concurrency groups", "concurrency group", result.concurrency, result.limit_s),
            *_workflows(result),
            *_left_out(result),
        ],
    )


def _bottleneck(result: SimulationResult) -> Iterator[str]:
    limit = format_duration(result.limit_s)
    yield "<h2>First bottleneck</h2>"
    found = result.bottleneck
    if found is None:
        yield f"<p>No task waited longer than {limit} for a slot.</p>"
        return
    yield (
        f'<p><span class="bad">{escape(found.kind)} {escape(found.name)}</span>, from '
        f"{_time(found.since)}: {escape(found.why)}.</p>"
    )
    yield f"<p>{escape(found.advice(limit))}</p>"


def _pools(heading: str, kind: str, pools: Sequence[PoolResult], limit_s: float) -> Iterator[str]:
    if not pools:
        return
    yield f"<h2>{heading}</h2>"
    yield from table(
        f"{heading} over the whole time",
        ["name", "slots", "busy", "attempts", "wait p50", "p95", "max", "still wait", "congested"],
        (_pool_row(pool, limit_s) for pool in pools),
    )
    for index, pool in enumerate(pools):
        yield from _chart(f"{kind.replace(' ', '-')}-{index}", kind, pool, limit_s)
        days = _days(pool.hours)
        yield from table(
            f"{pool.name}: day by day",
            ["day", "busy", "busiest hour", "most waiting", "longest wait", "attempts"],
            days,
        )


def _pool_row(pool: PoolResult, limit_s: float) -> list[str]:
    waits = pool.waits
    return [
        pool.name,
        f"{pool.slots:,}",
        f"{pool.utilisation:.0%}",
        f"{pool.attempts:,}",
        *[format_duration(one) for one in (waits.p50_s, waits.p95_s, waits.max_s)],
        f"{pool.still_waiting:,}" if pool.still_waiting else "",
        f"{pool.congested:,}x, {format_duration(pool.congested_s)}" if pool.congested else "",
    ]


def _days(hours: Sequence[HourOfPool]) -> Iterator[list[str]]:
    by_day: dict[str, list[HourOfPool]] = {}
    for hour in hours:
        by_day.setdefault(hour.at[:10], []).append(hour)
    for day, some in by_day.items():
        busiest = max(some, key=lambda hour: hour.utilisation)
        yield [
            day,
            f"{sum(hour.utilisation for hour in some) / len(some):.0%}",
            f"{busiest.at[11:16]} ({busiest.utilisation:.0%})",
            f"{max(hour.most_waiting for hour in some):,}",
            format_duration(max(hour.longest_s for hour in some)),
            f"{sum(hour.attempts for hour in some):,}",
        ]


def _chart(key: str, kind: str, pool: PoolResult, limit_s: float) -> Iterator[str]:
    """Two plots over the same hours: how busy the slots are, and the longest waits."""
    hours = pool.hours
    step = (_WIDTH - _LEFT) / len(hours)
    busiest = max(hours, key=lambda hour: hour.utilisation)
    longest = max(hours, key=lambda hour: hour.longest_s)
    told = (
        f"Of {pool.slots:,} slots {pool.utilisation:.0%} are busy on the average, "
        f"{busiest.utilisation:.0%} in the hour from {_time(busiest.at)}. The longest wait is "
        f"{format_duration(longest.longest_s)}, in the hour from {_time(longest.at)}."
    )
    lower = _TOP + _HEIGHT + 34
    highest_s = max(longest.longest_s, limit_s)
    yield f'<figure><svg viewBox="0 0 {_WIDTH} {lower + _HEIGHT + 30}" role="img"'
    yield f' aria-labelledby="{key}-title {key}-told">'
    yield f'<title id="{key}-title">{escape(pool.name)}: slots and waits by hour</title>'
    yield f'<desc id="{key}-told">{escape(told)}</desc>'
    yield from _frame(_TOP, "100 %", "busy")
    yield from _frame(lower, format_duration(highest_s), "longest wait")
    for index, hour in enumerate(hours):
        height = hour.utilisation * _HEIGHT
        if height:
            x, y = _LEFT + index * step, _TOP + _HEIGHT - height
            yield (
                f'<rect class="busy" x="{x:.1f}" y="{y:.1f}" '
                f'width="{max(step - 0.4, 0.4):.1f}" height="{height:.1f}"/>'
            )
    points = " ".join(
        f"{_LEFT + (index + 0.5) * step:.1f},"
        f"{lower + _HEIGHT * (1 - hour.longest_s / highest_s):.1f}"
        for index, hour in enumerate(hours)
    )
    yield f'<polyline class="wait" points="{points}"/>'
    at = lower + _HEIGHT * (1 - limit_s / highest_s)
    yield f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH}" y1="{at:.1f}" y2="{at:.1f}"/>'
    yield from _ticks(hours, step, lower + _HEIGHT + 18)
    limit = format_duration(limit_s)
    yield f"</svg><figcaption>{escape(kind)} {escape(pool.name)}. Above: the share of its slots "
    yield "that is taken, hour by hour. Below: the longest wait for a slot that ended in the hour; "
    yield f"the broken line is the limit of {limit}. {escape(told)}</figcaption></figure>"


def _frame(top: float, highest: str, what: str) -> Iterator[str]:
    low = top + _HEIGHT
    yield f'<line class="axis" x1="{_LEFT}" x2="{_WIDTH}" y1="{low}" y2="{low}"/>'
    yield f'<line class="axis" x1="{_LEFT}" x2="{_LEFT}" y1="{top}" y2="{low}"/>'
    yield f'<text x="{_LEFT - 6}" y="{top + 10}" text-anchor="end">{escape(highest)}</text>'
    yield f'<text x="{_LEFT - 6}" y="{low}" text-anchor="end">0</text>'
    yield f'<text x="{_LEFT + 6}" y="{top + 10}">{what}</text>'


def _ticks(hours: Sequence[HourOfPool], step: float, y: float) -> Iterator[str]:
    """Name some hours: midnights, or of a short time the first ones of equal parts."""
    midnights = [index for index, hour in enumerate(hours) if hour.at[11:13] == "00"]
    places = midnights if len(midnights) > 1 else list(range(len(hours)))
    shown = places[:: max(1, -(-len(places) // _MOST_TICKS))]
    for index in shown:
        at = hours[index].at
        text = at[5:10] if len(midnights) > 1 else at[11:16]
        yield f'<text x="{_LEFT + index * step:.1f}" y="{y}">{text}</text>'


def _workflows(result: SimulationResult) -> Iterator[str]:
    ordered = sorted(
        result.workflows, key=lambda one: (-one.late.max_s, -one.waits.max_s, one.name)
    )
    yield "<h2>Workflows</h2>"
    more = len(ordered) - _MOST_WORKFLOWS
    caption = "Those that miss deadlines first, then those whose tasks wait longest"
    if more > 0:
        caption += f"; {more:,} more are in the JSON"
    head = ["workflow", "runs", "failed", "refused", "lasted p50", "p95", "task wait p95", "max"]
    yield from table(
        caption,
        [*head, "late", "by p50", "at most"],
        map(_workflow_row, ordered[:_MOST_WORKFLOWS]),
    )


def _workflow_row(one: WorkflowResult) -> list[str]:
    late = [f"{one.late.count:,} of {one.with_deadline:,}" if one.with_deadline else ""]
    if one.late.count:
        late += [format_duration(one.late.p50_s), format_duration(one.late.max_s)]
    else:
        late += ["", ""]
    return [
        one.name,
        f"{one.runs:,}",
        f"{one.failed:,}" if one.failed else "",
        f"{one.refused:,}" if one.refused else "",
        format_duration(one.lasted.p50_s),
        format_duration(one.lasted.p95_s),
        format_duration(one.waits.p95_s),
        format_duration(one.waits.max_s),
        *late,
    ]


def _left_out(result: SimulationResult) -> Iterator[str]:
    if not result.left_out:
        return
    yield "<h2>What was assumed or left out</h2><ul>"
    yield from (f"<li>{escape(sentence)}</li>" for sentence in result.left_out)
    yield "</ul>"


def _time(text: str) -> str:
    return text[:16].replace("T", " ")
