"""``shoal insight why-slow``: a run against what is usual for it."""

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, InstanceId, Json

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from shoal.client.rest.operations.generated.types import BaselineOut, ComparedTaskOut

_BAR_WIDTH = 16  # characters
_STYLES = {"slower": "red", "faster": "green", "usual": "dim", "unknown": "dim"}


def why_slow(
    instance_id: InstanceId,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="Also tasks that took and waited as usual.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Say what made a run slower than usual: the run and its tasks beside those before it."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_instance_baseline(instance_id)
    if as_json:
        print_json(found)
        return
    console = out()
    console.print(Text(said(found), "bold"), soft_wrap=True)
    if found["of"] is None:
        say("no baselines were computed yet: docs/insight.md says how")
        return
    some = [
        one
        for one in found["tasks"]
        if every or one["is_critical"] or one["verdict"] not in ("usual", "unknown")
    ]
    if some:
        console.print()
        console.print(_tasks_table(some, console.width))
    left = len(found["tasks"]) - len(some)
    if left:
        say(f"{left:,} more took and waited as usual, or never ran: --all shows them")
    usual = found["run"]["usual"]
    if usual is not None:
        say(f"usual: the median of {usual['n']:,} runs in 60 days, as of {found['of']}")


def said(found: "BaselineOut") -> str:
    """Return what is to be said of a run, in one sentence."""
    from shoal.core.insight.comparison import Verdict, sentence, when_of

    run = found["run"]
    usual = run["usual"]
    causes = [
        (one["task"], one["difference_s"])
        for one in found["tasks"]
        if one["is_critical"] and one["difference_s"] is not None
    ]
    waits = [
        (one["effect_s"] or 0.0) - (one["difference_s"] or 0.0)
        for one in found["tasks"]
        if one["effect_s"] is not None
    ]
    return sentence(
        found["instance_id"],
        run["took_s"],
        None if usual is None else usual["p50_s"],
        Verdict(run["verdict"]),
        "" if usual is None else when_of(usual["weekday"], usual["hour"]),
        [*causes, ("waits", sum(waits))],
        is_open=found["finished_at"] is None,
    )


def _tasks_table(tasks: "list[ComparedTaskOut]", width: int) -> "Table":
    from rich.text import Text

    from shoal.client.cli.terminal.tables import TextTable
    from shoal.core.timing.durations import format_duration

    def length(seconds: float | None) -> str:
        return "" if seconds is None else format_duration(seconds)

    longest = max((_longest(one) for one in tasks), default=0.0) or 1.0
    columns = ["task", "took>", "usually>", "difference>", "", "waited>", "usually>"]
    shown = TextTable([*columns, "made the run>"])
    for one in tasks:
        usual = one["usual"]
        style = _STYLES[one["verdict"]]
        waited = one["path_wait_s"] if one["is_critical"] else one["waited_s"]
        effect = one["effect_s"]
        shown.add(
            Text(one["task"]),
            length(one["took_s"]),
            "" if usual is None else length(usual["p50_s"]),
            Text(_signed(one["difference_s"]), style),
            _bar(one, longest),
            length(waited),
            "" if usual is None else length(usual["wait_p50_s"]),
            "" if effect is None else f"{_signed(effect)} {'longer' if effect > 0 else 'shorter'}",
        )
    return shown.table(width, ("waited", "made the run"))


def _longest(task: "ComparedTaskOut") -> float:
    usual = task["usual"]
    return max(task["took_s"] or 0.0, 0.0 if usual is None else usual["p50_s"])


def _bar(task: "ComparedTaskOut", longest: float) -> "Text":
    """Return what a task took as a bar: up to the usual, then what is beyond it, or missing."""
    from rich.text import Text

    def cells(seconds: float) -> int:
        return round(seconds / longest * _BAR_WIDTH)

    took, usual = task["took_s"], task["usual"]
    if took is None:
        return Text("")
    middle = took if usual is None else usual["p50_s"]
    same, beyond = cells(min(took, middle)), cells(took) - cells(min(took, middle))
    missing = cells(middle) - cells(took)
    return Text.assemble(
        ("█" * same, "blue"),
        ("▓" * max(0, beyond), _STYLES[task["verdict"]]),
        ("░" * max(0, missing), "dim"),
    )


def _signed(seconds: float | None) -> str:
    from shoal.core.timing.durations import format_duration

    if seconds is None:
        return ""
    return f"{'+' if seconds > 0 else ''}{format_duration(seconds)}"
