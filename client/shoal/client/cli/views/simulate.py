"""``shoal simulate``: what the cluster would do over the next days."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json, in_utc, require_logical_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table

    from shoal.core.definition.model import WorkflowSpec
    from shoal.insight.simulate.model import Model
    from shoal.insight.simulate.result import PoolResult, SimulationResult, WorkflowResult
    from shoal.insight.simulate.validation import Validation

_MOST_WORKFLOWS = 20  # lines of the table; all of them are in the JSON


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Runs")(simulate)


def simulate(
    days: Annotated[float, typer.Option(min=0.01, max=366, help="For how many days.")] = 7.0,
    start: Annotated[
        datetime | None,
        typer.Option(
            "--from", metavar="TIME", help="Begin at this time (UTC); default: the model's."
        ),
    ] = None,
    slots: Annotated[
        int | None, typer.Option(min=0, help="Slots of the worker group default.")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SLOTS", help="Slots of a worker group; repeatable."),
    ] = None,
    add_workflow: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Add the workflows of a file, or change them; repeatable."
        ),
    ] = None,
    shift: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORKFLOW=TIME",
            help="Let its schedules fire later, as by +15m, or earlier, as by -1h; repeatable.",
        ),
    ] = None,
    duration: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORKFLOW[:TASK]=TIME",
            help="Let a task, or all of a workflow, last so long; repeatable.",
        ),
    ] = None,
    limit: Annotated[
        str,
        typer.Option(metavar="TIME", help="A longer wait for a slot counts as a bottleneck."),
    ] = "1m",
    seed: Annotated[
        int, typer.Option(help="Another seed draws other durations; the same one the same.")
    ] = 1,
    history: Annotated[
        str, typer.Option(metavar="TIME", help="How far back durations are taken from.")
    ] = "14d",
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the model from a file; no cluster is asked."),
    ] = None,
    save_model: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the model in a file.")
    ] = None,
    validate: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="Simulate the runs of this day (UTC) instead, and compare waits with those "
            "that there were.",
        ),
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts (HTML).")
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Simulate the next days: how busy worker groups get, what waits, what would be late.

    The timetables and the decisions are the cluster's own; durations are drawn from its history.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.core.timing.logical_time import LAST
    from shoal.insight.simulate import changes
    from shoal.insight.simulate.chart import write as write_chart
    from shoal.insight.simulate.model import read, write
    from shoal.insight.simulate.result import simulate as simulated
    from shoal.insight.simulate.simulation import Question

    limit_s = _seconds(limit, "--limit")
    shifts = {name: _shift(text) for name, text in _pairs(shift, "--shift")}
    lengths = {name: _seconds(text, "--duration") for name, text in _pairs(duration, "--duration")}
    groups = {name: _slots(text) for name, text in _pairs(group, "--group")}
    if slots is not None:
        groups = {"default": slots, **groups}
    if validate is not None and (shifts or add_workflow or chart or start or model):
        raise typer.BadParameter(
            "it is about a day that was: --from, --shift, --add-workflow, --chart and --model do "
            "not go with it",
            param_hint="--validate",
        )
    if validate is not None:
        _show_validation(_validated(validate, data, history, groups, seed), as_json)
        return
    found = read(model) if model is not None else _collect(data, history)
    if save_model is not None:
        write(found, save_model)
        say(f"the model is in {save_model}")
    found = changes.with_slots(found, groups)
    found = changes.with_workflows(found, _definitions(add_workflow or ()))
    found = changes.with_durations(found, lengths)
    begin = in_utc(start) or found.at
    require_logical_time(begin, "--from")
    if LAST - begin < timedelta(days=days):
        raise typer.BadParameter(
            f"{days:g} days from {begin} end after {LAST}", param_hint="--days"
        )
    question = Question(
        begin,
        begin + timedelta(days=days),
        seed,
        limit_s,
        changes.shifts_of(found, shifts),
    )
    result = simulated(found, question)
    if chart is not None:
        write_chart(result, chart)
        say(f"the chart is in {chart}")
    if as_json:
        print_json(result.as_json())
    else:
        _show(result)


# -- input --------------------------------------------------------------------------------------


def _collect(data: Path | None, history: str) -> "Model":
    from datetime import UTC

    from shoal.client.rest.client import ShoalClient
    from shoal.client.simulation import collect

    back = timedelta(seconds=_seconds(history, "--history"))
    with ShoalClient.connect(data) as client:
        return collect(client, datetime.now(UTC).replace(second=0, microsecond=0), back)


def _definitions(paths: "Sequence[Path]") -> "Iterable[WorkflowSpec]":
    from shoal.client.sources.definitions import load_definitions

    if not paths:
        return []
    return [one.spec for one in load_definitions(paths).definitions]


def _pairs(given: list[str] | None, option: str) -> "Iterable[tuple[str, str]]":
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise typer.BadParameter(f"{text!r}: write NAME=VALUE", param_hint=option)
        yield name, value


def _seconds(text: str, option: str) -> float:
    from shoal.core.timing.durations import InvalidDuration, parse_duration

    try:
        return parse_duration(text)
    except InvalidDuration as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _shift(text: str) -> timedelta:
    sign = -1 if text.startswith("-") else 1
    return sign * timedelta(seconds=_seconds(text.lstrip("+-"), "--shift"))


def _slots(text: str) -> int:
    from shoal.core.runs.concurrency import MOST_SLOTS

    if not text.isdecimal() or int(text) > MOST_SLOTS:
        raise typer.BadParameter(
            f"{text!r} is not a number of slots from 0 to {MOST_SLOTS:,}", param_hint="--group"
        )
    return int(text)


# -- output -------------------------------------------------------------------------------------


def _show(result: "SimulationResult") -> None:
    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import out, say
    from shoal.core.timing.durations import format_duration

    console = out()
    say(
        f"{plural(result.runs, 'run')}, {plural(result.attempts, 'attempt')} from "
        f"{_time(result.start)} to {_time(result.end)} UTC, seed {result.seed}"
    )
    console.print(_pools_table("worker group", result.groups, console.width))
    if result.concurrency:
        console.print()
        console.print(_pools_table("concurrency group", result.concurrency, console.width))
    console.print()
    console.print(_workflows_table(result.workflows, console.width))
    if (more := len(result.workflows) - _MOST_WORKFLOWS) > 0:
        say(f"{plural(more, 'more workflow')}; --json has all of them")
    console.print()
    limit = format_duration(result.limit_s)
    found = result.bottleneck
    if found is None:
        console.print(f"no bottleneck: no task waited longer than {limit} for a slot")
    else:
        what = f"first bottleneck: {found.kind} {found.name}, from {_time(found.since)} UTC"
        console.print(what, style="bold", markup=False)
        console.print(f"  {found.why}", markup=False, soft_wrap=True)
        console.print(f"  {found.advice(limit)}", markup=False, soft_wrap=True)
    _show_left_out(result.left_out)


def _show_left_out(sentences: "Sequence[str]") -> None:
    from shoal.client.cli.terminal.output import say

    for sentence in sentences:
        say(f"note: {sentence}", "dim")


def _pools_table(kind: str, pools: "Sequence[PoolResult]", width: int) -> "Table":
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.core.timing.durations import format_duration

    columns = [kind, "slots>", "busy>", "attempts>", "wait p50>", "p95>", "max>", "still wait>"]
    shown = TextTable([*columns, "beyond the limit>"])
    for pool in pools:
        waits = pool.waits
        beyond = f"{pool.congested:,}x, {format_duration(pool.congested_s)}"
        shown.add(
            pool.name,
            f"{pool.slots:,}",
            f"{pool.utilisation:.0%}",
            f"{pool.attempts:,}",
            *(format_duration(one) for one in (waits.p50_s, waits.p95_s, waits.max_s)),
            f"{pool.still_waiting:,}" if pool.still_waiting else "",
            beyond if pool.congested else "",
        )
    return shown.table(width, ("still wait", "beyond the limit"))


def _workflows_table(workflows: "Sequence[WorkflowResult]", width: int) -> "Table":
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.core.timing.durations import format_duration

    columns = ["workflow", "runs>", "failed>", "refused>", "lasted p50>", "p95>", "waits p95>"]
    shown = TextTable([*columns, "late>", "late p50>", "at most>"])
    ordered = sorted(workflows, key=lambda one: (-one.late.max_s, -one.waits.p95_s, one.name))
    for one in ordered[:_MOST_WORKFLOWS]:
        shown.add(
            one.name,
            f"{one.runs:,}",
            f"{one.failed:,}" if one.failed else "",
            f"{one.refused:,}" if one.refused else "",
            format_duration(one.lasted.p50_s) if one.lasted.count else "",
            format_duration(one.lasted.p95_s) if one.lasted.count else "",
            format_duration(one.waits.p95_s) if one.waits.count else "",
            f"{one.late.count:,} of {one.with_deadline:,}" if one.with_deadline else "",
            format_duration(one.late.p50_s) if one.late.count else "",
            format_duration(one.late.max_s) if one.late.count else "",
        )
    return shown.table(width, ("refused", "p95", "late p50"))


def _time(text: str) -> str:
    return text[:16].replace("T", " ")


# -- a day that was -----------------------------------------------------------------------------


def _validated(
    text: str, data: Path | None, history: str, groups: dict[str, int], seed: int
) -> "Validation":
    from datetime import UTC

    from shoal.client.rest.client import ShoalClient
    from shoal.client.simulation import attempts_of, collect, runs_of
    from shoal.insight.simulate import changes
    from shoal.insight.simulate.validation import start_of, validate

    try:
        day = start_of(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a day, such as 2026-11-21", param_hint="--validate"
        ) from None
    back = timedelta(seconds=_seconds(history, "--history"))
    with ShoalClient.connect(data) as client:
        model = collect(client, datetime.now(UTC), back)
        runs, attempts = runs_of(client, day), list(attempts_of(client, day))
    return validate(changes.with_slots(model, groups), day, runs, attempts, seed)


def _show_validation(found: "Validation", as_json: bool) -> None:
    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.core.timing.durations import format_duration

    if as_json:
        print_json(found.as_json())
        return
    say(
        f"waits of {plural(found.attempts, 'attempt')} in {plural(found.runs, 'run')} of "
        f"{found.day}, in pairs: recorded and simulated"
    )
    columns = ["worker group", "durations", "attempts>", "recorded p50>", "p95>", "max>"]
    shown = TextTable([*columns, "simulated p50>", "p95>", "max>", "error p50>", "p95>"])
    for how, errors in (("as recorded", found.repeated), ("drawn", found.drawn)):
        for group, one in errors.items():
            recorded, simulated = one.recorded, one.simulated
            lengths = [recorded.p50_s, recorded.p95_s, recorded.max_s]
            lengths += [simulated.p50_s, simulated.p95_s, simulated.max_s]
            lengths += [one.median_s, one.p95_s]
            shown.add(group, how, f"{one.attempts:,}", *map(format_duration, lengths))
    out().print(shown.table(out().width))
    _show_left_out(found.left_out)
