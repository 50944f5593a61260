"""``shoal insight report``: what has run and what has changed, in the terminal and as a page."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.insight import history, setup, slowness
from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import WorkflowSort
    from shoal.insight.report.answers import Answer, Collected


_SHOWN = 5  # lines of each list in the terminal; the page has more
_COLLECTED = 20  # of each list
_SAMPLE_CHARS = 100


def report(
    project: Annotated[
        str | None, typer.Option(metavar="PROJECT", help="Only what this project did.")
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=92, help="How many days, up to the newest with results.")
    ] = 28,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write a page to look at, for any browser."
        ),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show what has run, what got slower, fails or waits, and what is to come."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient
    from shoal.insight.pages.document import write
    from shoal.insight.report.page import page

    with ShoalClient.connect(data) as client:
        found = _collected(client, project, days)
    if output is not None:
        write(page(found), output)
    if as_json:
        print_json(found.as_json())
    elif found.is_empty:
        say(
            "there are no results of run history yet: `shoal insight status` shows how far the "
            "export is, and docs/insight.md says how to run the jobs over it"
        )
    else:
        _show(found, out())
    if output is not None:
        say(f"written: {output}")


def _collected(client: "ShoalClient", project: str | None, days: int) -> "Collected":
    """Ask for everything about the last days that have results."""
    from datetime import timedelta

    from shoal.insight.report.answers import Collected

    newest = client.get_insight_summary(project=project)["until"]
    last = None if newest is None else date.fromisoformat(newest)
    first = None if last is None else last - timedelta(days=days - 1)

    def workflows(sort: "WorkflowSort") -> "Sequence[Answer]":
        found = client.list_insight_workflows(
            sort=sort, limit=_COLLECTED, project=project, from_=first, to=last
        )
        return found["items"]

    return Collected(
        at=datetime.now(UTC),
        source=client.url,
        project=project,
        summary=client.get_insight_summary(project=project, from_=first, to=last),
        slower=workflows("slower"),
        waits=workflows("waits"),
        late=workflows("late"),
        failing=workflows("failures"),
        failures=client.list_insight_failures(
            limit=_COLLECTED, project=project, from_=first, to=last
        ),
        costs=client.list_insight_costs(limit=_COLLECTED, project=project, from_=first, to=last),
        load=None if project else _load(client, first, last),
        minutes=_minutes_of(client.get_insight_schedule_minutes(), project),
    )


def _minutes_of(found: "Answer", project: str | None) -> "Answer":
    """Return what a report about one project has: the minutes are those of all schedules."""
    if project is None:
        return found
    moves = [one for one in found["moves"] if one["project"] == project]
    return {**found, "minutes": None, "moves": moves}


def _load(client: "ShoalClient", first: date | None, last: date | None) -> "Answer | None":
    """Return the load of the cluster; None: it is not for this caller."""
    from shoal.client.errors import ApiProblem

    try:
        return client.get_insight_load(from_=first, to=last)
    except ApiProblem as problem:
        if problem.status != 403:
            raise
        return None


# -- in the terminal --------------------------------------------------------------------------


def _show(found: "Collected", console: "Console") -> None:
    from rich.text import Text

    from shoal.insight.report.words import figures

    summary = found.summary
    of = f" of {found.project}" if found.project else ""
    head = f"{summary['first']} to {summary['last']}{of}"
    console.print(Text.assemble((head, "bold"), (f"  {_compared(summary)}", "dim")))
    for one in figures(summary):
        style = {None: "dim", True: "red", False: "green"}[one.is_worse]
        line = Text.assemble(f"  {one.name:<24}", (f"{one.text:>10}", "bold"))
        console.print(line.append(f"  {one.change}", style))
    for heading, lines in _sections(found):
        some = list(lines)
        if some:
            console.print()
            console.print(Text(heading, "bold"))
        for text in some:
            console.print(Text(f"  {text}"), soft_wrap=True)


def _compared(summary: "Answer") -> str:
    return (
        f"beside {summary['before_first']} to {summary['before_last']}; results of "
        f"{summary['days']} {'day' if summary['days'] == 1 else 'days'}, up to {summary['until']}"
    )


def _sections(found: "Collected") -> "Iterator[tuple[str, Iterator[str]]]":
    yield "What got slower", _slower(found)
    yield "What fails", _failures(found)
    yield "What was late", _late(found)
    yield "What waits", _waits(found)
    yield "What was used", _costs(found)
    yield "When it is full", _load_lines(found)
    yield "What is to come", _forecast(found)
    yield "Hot minutes", _minutes(found)


def _name(one: "Answer") -> str:
    return f"{one['project']}/{one['workflow']}"


def _slower(found: "Collected") -> "Iterator[str]":
    from shoal.insight.report.words import length, times

    for one in found.got_slower[:_SHOWN]:
        now, before = one["now"]["duration_p50_s"], one["before"]["duration_p50_s"]
        more = f"+{length(one['duration_change_s'])}, {times(one['duration_ratio'])}"
        yield f"{_name(one)}: {length(before)} -> {length(now)}  ({more})"


def _failures(found: "Collected") -> "Iterator[str]":
    from shoal.client.cli.terminal.appearance import one_line

    for one in found.failures["items"][:_SHOWN]:
        sample = one_line(one["sample"]) or "no error line"
        sample = sample if len(sample) <= _SAMPLE_CHARS else f"{sample[:_SAMPLE_CHARS]}…"
        first = one["where"][0]
        more = f" and {len(one['where']) - 1} more" if len(one["where"]) > 1 else ""
        yield f"{one['count']:>6,}×  {sample}  ({_name(first)}: {first['task']}{more})"


def _late(found: "Collected") -> "Iterator[str]":
    from shoal.insight.report.words import share

    for one in found.were_late[:_SHOWN]:
        now = one["now"]
        yield f"{_name(one)}: {now['late']:,} of {now['runs']:,} runs ({share(now['late_rate'])})"


def _waits(found: "Collected") -> "Iterator[str]":
    from shoal.insight.report.words import length

    for one in found.waiting[:_SHOWN]:
        now = one["now"]
        yield (
            f"{_name(one)}: {length(now['admission_mean_s'])} for the admission, "
            f"{length(now['wait_mean_s'])} for a worker"
        )


def _costs(found: "Collected") -> "Iterator[str]":
    from shoal.insight.report.words import hours, share

    for one in found.costs["items"][:_SHOWN]:
        now = one["now"]
        yield (
            f"{_name(one)}: {hours(now['slot_s'])} of slots ({share(one['share'])}), "
            f"{hours(now['cpu_s'])} of processors"
        )


def _load_lines(found: "Collected") -> "Iterator[str]":
    from shoal.insight.report.sections.cluster import busiest, when

    for group in found.load["groups"] if found.load else ():
        most = busiest(group["cells"])
        yield (
            f"{group['worker_group']}: {when(most)} UTC, {most['running_mean']:.1f} running on "
            f"average, {most['running_max']:,} at most, {most['waiting_max']:,} waiting"
        )


def _forecast(found: "Collected") -> "Iterator[str]":
    most: dict[str, Answer] = {}
    for one in found.load["forecast"] if found.load else ():
        other = most.get(one["worker_group"])
        if other is None or one["slots"] > other["slots"]:
            most[one["worker_group"]] = one
    for group, one in sorted(most.items()):
        yield (
            f"{group}: most on {one['forecast_day']} at {one['hour']:02}:00 UTC, "
            f"{one['slots']:,} slots ({one['expected']:.0f} are expected)"
        )


def _minutes(found: "Collected") -> "Iterator[str]":
    from shoal.insight.report.words import minute

    for one in found.hot_minutes[:_SHOWN]:
        yield (
            f"{minute(one['minute'])} UTC: {one['starts_mean']:.1f} starts a day, "
            f"{one['starts_max']:,} at most"
        )
    for one in found.minutes["moves"][:_SHOWN]:
        yield (
            f"move schedule {one['schedule_id']} of {_name(one)} by {one['move_min']:+} minutes, "
            f"which relieves {minute(one['minute'])}"
        )


group = typer.Typer(
    name="insight",
    no_args_is_help=True,
    help="The history of all runs, exported as Parquet files, and what it tells.",
)
_COMMANDS = (
    setup.setup,
    report,
    slowness.why_slow,
    history.export,
    history.load,
    history.status,
)
for _command in _COMMANDS:
    group.command()(_command)


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.add_typer(group, rich_help_panel="Cluster")
