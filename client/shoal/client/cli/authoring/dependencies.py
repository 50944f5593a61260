"""``shoal dependencies``: which workflows name which, and wait for which on a day."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import (
    DEFAULT_PROJECT,
    Data,
    Json,
    Project,
    find_workflow,
)

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import (
        DependencyEdge,
        DependencyGraphOut,
        DependencyNode,
    )


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command(rich_help_panel="Workflows")(dependencies)


def dependencies(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="A workflow, also PROJECT/NAME; none: all of the project."
        ),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Show the runs of this logical day, YYYY-MM-DD."),
    ] = None,
    hops: Annotated[
        int, typer.Option(min=0, max=20, help="How many steps to go in both directions.")
    ] = 2,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the workflows that one runs or waits for, and those that run it or wait for it.

    With a date, or for a whole project: what waits for what, with the runs of that day.
    """
    from shoal.client.cli.authoring.changes import show_named
    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        home, workflow = project or DEFAULT_PROJECT, name
        if name is not None:
            home, workflow = find_workflow(client, name, project)
        if workflow is None or date is not None:
            graph = client.get_dependency_graph(home, workflow=workflow, date=date, hops=hops)
            if as_json:
                print_json(graph)
            else:
                _show(graph)
            return
        found = client.get_dependencies(home, workflow)
    if as_json:
        print_json(found)
        return
    for one in found["upstream"]:
        text = f"names {one['project']}/{one['workflow']}, task {one['task']} ({one['kind']})"
        out().print(text, highlight=False)
    show_named(found["downstream"], found["hidden"])


def _show(graph: "DependencyGraphOut") -> None:
    from rich.text import Text

    from shoal.client.cli.runs.graph import draw
    from shoal.client.cli.terminal.appearance import lasted, state_text
    from shoal.client.cli.terminal.output import out, say
    from shoal.client.cli.terminal.tables import TextTable

    nodes = {one["id"]: one for one in graph["nodes"]}
    if not graph["edges"]:
        say("no workflow waits for another one")
        if not nodes:
            return
    now = datetime.now(UTC)
    critical = set(graph["critical"])
    edges: dict[str, list[DependencyEdge]] = {name: [] for name in nodes}
    for edge in graph["edges"]:
        edges[edge["target"]].append(edge)
    shown = TextTable(["workflow", "state", "run>", "lasted>", "~"])
    for line in draw(_upstream(graph, list(nodes))):
        node = nodes[line.task]
        run = node["runs"][0] if node["runs"] else None
        lasting = lasted(run["started_at"], run["finished_at"], now) if run else ""
        shown.add(
            Text.assemble(
                (line.branch, "dim"), (line.task, "bold" if line.task in critical else "")
            ),
            state_text(node["state"]) if node["state"] else Text("no run", "dim"),
            str(run["id"]) if run else "",
            lasting,
            Text("; ".join(_notes(node, line.also_after, edges[line.task], nodes)), "dim"),
        )
    out().print(shown.table(out().width, ("lasted",)))
    if critical:
        say(f"critical: {' → '.join(graph['critical'])}")
    if graph["is_cut"]:
        say("there are more workflows than one answer shows: ask around one of them")


def _upstream(graph: "DependencyGraphOut", names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return what each workflow waits for, without what leads around in a circle."""
    sources: dict[str, list[str]] = {name: [] for name in names}
    for edge in graph["edges"]:
        if edge["source"] != edge["target"] and not _leads(sources, edge["source"], edge["target"]):
            sources[edge["target"]].append(edge["source"])
    return sources


def _leads(sources: Mapping[str, Sequence[str]], start: str, goal: str) -> bool:
    """Say whether ``start`` waits for ``goal``, be it by way of others."""
    seen, rest = {start}, [start]
    while rest:
        for one in sources[rest.pop()]:
            if one == goal:
                return True
            if one not in seen:
                seen.add(one)
                rest.append(one)
    return False


def _notes(
    node: "DependencyNode",
    also_after: Sequence[str],
    edges: "Sequence[DependencyEdge]",
    nodes: "Mapping[str, DependencyNode]",
) -> list[str]:
    """``edges``: what the node waits for."""
    notes = [f"also after {', '.join(also_after)}"] if also_after else []
    if not node["is_known"]:
        notes.append("is not there, or hidden from you")
    for edge in edges:
        dates = sorted({task["date"] for task in edge["tasks"] if task["date"]})
        if dates:
            note = f"looks for {', '.join(dates)} of {edge['source']}"
            source = nodes[edge["source"]]
            if (edge["since"], edge["until"]) != (source["since"], source["until"]):
                run = edge["run"]
                note += f" ({run['state']}, run {run['id']})" if run else " (no run)"
            notes.append(note)
    if not all(edge["is_allowed"] for edge in edges):
        notes.append("lacks a grant of what it waits for")
    if len(node["runs"]) > 1:
        notes.append(f"{len(node['runs'])}{'+' if node['has_more'] else ''} runs")
    if node["hidden"]:
        notes.append(f"{node['hidden']} more wait for it that you do not see")
    return notes
