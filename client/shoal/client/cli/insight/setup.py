"""``shoal insight setup``: the project whose workflows compute roll-ups."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from shoal.client.cli.workflows.apply import ApplyPlan
    from shoal.client.rest.client import ShoalClient

_BYTES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LEAST_HEAP = 512 << 20  # below 450 MiB Spark does not start
_DEFAULTS = {"spark": "local[*]", "spark_memory": "1g", "spark_scratch": ""}


def setup(
    project: Annotated[str, typer.Option(help="The project; it is made if need be.")] = "insight",
    history: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Folder or URL of the exported history, as workers see it. Default: this "
            "machine's settings.",
        ),
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option(
            metavar="MASTER",
            help="Where Spark runs: local[*], the machine of the worker (the default), or such "
            "as spark://host:7077.",
        ),
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Heap of Spark's driver. Default: 1g.")
    ] = None,
    scratch: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="For unfinished files, seen by all of Spark's hosts."),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Let the cluster compute roll-ups every night: make the project and publish its workflows.

    Run it again after an upgrade, or to change something; what is not named stays as it is.
    """
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.rest.client import ShoalClient

    _require_place("--history", history)
    _require_place("--scratch", scratch)
    _require_memory(memory)
    given = {"spark": spark, "spark_memory": memory, "spark_scratch": scratch}
    wanted = {name: value for name, value in given.items() if value is not None}
    with ShoalClient.connect(data) as client:
        plans = _plans(client, project)
        listed = client.pages(client.list_parameters, project)
        before = {one["name"]: one["value"] for one in client.find(list, listed) or ()}
        if history is not None or "history" not in before:
            wanted["history"] = history or _known_history(data)
        wanted |= {name: value for name, value in _DEFAULTS.items() if name not in before | wanted}
        for name, value in sorted(wanted.items()):
            if before.get(name) != value:
                client.with_project(client.put_parameter, project, name, {"value": value})
        after = before | wanted
        changed = [plan for plan in plans if plan.changed]
        for plan in changed:
            client.publish(plan.definition.spec)
    if as_json:
        workflows = {plan.definition.spec.name: plan.answer["version"] for plan in plans}
        used = {name: after[name] for name in ("history", *_DEFAULTS)}
        print_json({"project": project, "parameters": used, "workflows": workflows})
        return
    _tell(project, plans, before, after)


def _require_place(option: str, place: str | None) -> None:
    """Refuse what would be another folder for each worker, or none: the jobs fail at night only."""
    if place and "://" not in place and not Path(place).is_absolute():
        raise typer.BadParameter(
            f"{place!r} is neither a URL nor a folder from the root on; workers have other "
            "working folders than you",
            param_hint=option,
        )


def _require_memory(memory: str | None) -> None:
    import re

    if memory is None:
        return
    found = re.fullmatch(r"([0-9]{1,9})([kmgt])", memory, re.IGNORECASE)
    if not found or int(found[1]) * _BYTES[found[2].lower()] < _LEAST_HEAP:
        raise typer.BadParameter(
            f"{memory!r} is not a size that Java takes; at least 512m, such as 1g or 1536m",
            param_hint="--memory",
        )


def _plans(client: "ShoalClient", project: str) -> "list[ApplyPlan]":
    """Return what publishing the workflows would do."""
    from dataclasses import replace

    from shoal.client.cli.workflows.apply import ApplyPlan, publish_definition
    from shoal.client.sources.definitions import load_definitions
    from shoal.insight import workflows

    [folder] = workflows.__path__
    found = load_definitions(sorted(Path(folder).glob("*.yaml"))).definitions
    plans = []
    for one in found:
        spec = one.spec.model_copy(update={"project": project})
        definition = replace(one, spec=spec)
        plans.append(ApplyPlan(definition, publish_definition(client, definition, dry_run=True)))
    return plans


def _known_history(data: Data) -> str:
    """Return where the history of this machine's cluster is. Raises ShoalError."""
    import asyncio

    from shoal.client.cli.insight.history import cluster_with_history
    from shoal.core.errors import ShoalError
    from shoal.insight.export.program import history_of

    try:
        cluster = cluster_with_history(data)
        return asyncio.run(history_of(cluster, cluster.history_url)).root
    except ShoalError as error:
        raise ShoalError(
            f"this machine does not know where the history is: {error}; or name the folder or URL "
            "that `shoal insight status` shows on a machine that does: --history URL"
        ) from error


def _tell(
    project: str, plans: "list[ApplyPlan]", before: dict[str, str], after: dict[str, str]
) -> None:
    from datetime import UTC, datetime, timedelta

    from rich.text import Text

    from shoal.client.cli.terminal.output import out, say
    from shoal.client.cli.workflows.apply import plan_lines

    for name in ("history", *_DEFAULTS):
        is_new = before.get(name) != after[name]
        line = Text.assemble((f"{name:14}", "bold"), after[name] or "-", " (set)" if is_new else "")
        out().print(line, soft_wrap=True)
    for plan in plans:
        for shown in plan_lines(plan):
            out().print(shown, soft_wrap=True)
    today = datetime.now(UTC).date()
    yesterday, since = today - timedelta(days=1), today - timedelta(days=28)
    for told in (
        "Every night at 01:15 UTC it computes the day before; masters then load the results.",
        "Workers that run it need PySpark and Java: pip install 'shoal[insight]'.",
        "Now, for yesterday:",
        f"    shoal run {project}/daily --wait",
        "For days that were before:",
        f"    shoal run {project}/daily -p day={since}:{yesterday} --wait",
        "or one run for each of them (a run is for the day before its date):",
        f"    shoal backfill {project}/daily --from {since} --to {yesterday} --task days --only",
    ):
        out().print(told, soft_wrap=True, markup=False, highlight=False)
    say(f"{project} is set up")
