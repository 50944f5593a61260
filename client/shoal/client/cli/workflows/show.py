"""``shoal workflows``, ``workflow`` and ``task-types``: what is published, what can be used."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shoal.client.cli.terminal.options import Data, Json, Project, WorkflowName, find_workflow

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import ScheduleOut, TaskTypeOut


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command(rich_help_panel="Workflows")(workflows)
    app.command(rich_help_panel="Workflows")(workflow)
    app.command("task-types", rich_help_panel="Workflows")(task_types)


def workflows(
    search: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="Only those with this in their name.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY[=VALUE]", help="Only those with this label; repeatable."),
    ] = None,
    owner: Annotated[
        str | None, typer.Option(help="Only with this owner; '': without an owner.")
    ] = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="Those that are archived instead.")
    ] = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the published workflows."""
    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        which: Literal["true", "false"] = "true" if archived else "false"
        listed = client.pages(
            client.list_workflows,
            project=project,
            search=search,
            label=label or (),
            owner=owner,
            archived=which,
        )
        found = list(listed)
    if as_json:
        print_json(found)
        return
    if not found:
        say("no workflows; publish one with `shoal apply FILE`")
        return
    from rich.text import Text

    now = datetime.now(UTC)
    shown = TextTable(["workflow", "version>", "tasks>", "changed", "owner", "description~"])
    for item in found:
        name = Text.assemble((f"{item['project']}/", "dim"), item["name"])
        changed = clock(item["updated_at"], now)
        about = Text(item["description"], "dim")
        shown.add(
            name, str(item["version"]), str(item["tasks"]), changed, item.get("owner", ""), about
        )
    out().print(shown.table(out().width, ("owner", "changed", "tasks", "version")))


def workflow(
    name: WorkflowName,
    version: Annotated[int | None, typer.Option(min=1, help="An older version.")] = None,
    as_yaml: Annotated[
        bool, typer.Option("--yaml", help="Print the definition as a file for `shoal apply`.")
    ] = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show a workflow: its tasks, parameters and schedules."""
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.rest.client import ShoalClient
    from shoal.runtime.documents.yaml_text import definition_yaml

    with ShoalClient.connect(data) as client:
        home, name = find_workflow(client, name, project)
        schedules: list[ScheduleOut] = []
        shown: Any
        if version is None:
            shown = client.get_workflow(home, name)
            schedules = list(client.pages(client.list_workflow_schedules, home, name))
        else:
            shown = client.get_version(home, name, version)
    if as_json:
        print_json(shown)
    elif as_yaml:
        definition = {"project": home, **shown["definition"]}
        print(definition_yaml(definition), end="")
    else:
        _show(home, name, shown["version"], shown["definition"], schedules)


def _show(
    project: str,
    name: str,
    version: int,
    definition: dict[str, Any],
    schedules: "list[ScheduleOut]",
) -> None:
    from rich.text import Text

    from shoal.client.cli.runs.graph import draw
    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out
    from shoal.client.cli.terminal.tables import TextTable

    console = out()
    head = Text.assemble((f"{project}/", "dim"), (name, "bold"), f"  version {version}")
    console.print(head)
    if definition.get("owner"):
        console.print(Text(f"owner {definition['owner']}", "dim"))
    if definition.get("description"):
        console.print(Text(definition["description"], "dim"))
    tasks = {task["name"]: task for task in definition["tasks"]}
    shown = TextTable(["task", "type", "run when", "group", "retries>", "also after~"])
    for line in draw({key: task.get("depends_on", ()) for key, task in tasks.items()}):
        task = tasks[line.task]
        label = Text.assemble((line.branch, "dim"), line.task)
        if not task.get("enabled", True):
            label.append(" (off)", "dim")
        retries = str(task["retries"]) if task.get("retries") else ""
        group = task.get("worker_group", "")
        also = Text(", ".join(line.also_after), "dim")
        shown.add(label, task["type"], task.get("run_when", ""), group, retries, also)
    console.print()
    console.print(shown.table(console.width, ("group", "retries")))
    if definition.get("parameters"):
        shown = TextTable(["parameter", "type", "default", "description~"])
        for key, value in definition["parameters"].items():
            default = value.get("default")
            given = Text("must be given", "dim") if default is None else Text(default)
            kind = value.get("type", "string")
            shown.add(key, kind, given, Text(value.get("description", "")))
        console.print()
        console.print(shown.table(console.width, ("group", "retries")))
    if schedules:
        shown = TextTable(["schedule", "zone", "next"])
        now = datetime.now(UTC)
        for item in schedules:
            following = clock(item["next_fire_at"], now, item["timezone"]) or "never"
            shown.add(Text(item["cron"]), item["timezone"], following if item["enabled"] else "off")
        console.print()
        console.print(shown.table(console.width))


def task_types(data: Data = None, as_json: Json = False) -> None:
    """List the task types and the fields of their params."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_task_types))
    if as_json:
        print_json(found)
        return
    for number, item in enumerate(found):
        if number:
            out().print()
        shown = TextTable([item["name"], "value", "default", "~"])
        for row in _fields(item):
            shown.add(*(Text(cell) for cell in row))
        out().print(shown.table(out().width, ("default",)))


def _fields(item: "TaskTypeOut") -> list[tuple[str, str, str, str]]:
    """Return name, kind, default and description of every field."""
    import json

    schema = item["params_schema"]
    required = schema.get("required", ())
    rows = []
    for name, field in schema.get("properties", {}).items():
        default = field.get("default")
        shown = "required" if name in required else ""
        if default not in (None, "", [], {}):
            shown = default if isinstance(default, str) else json.dumps(default)
        rows.append((name, _kind(field), shown, field.get("description", "")))
    return rows


def _kind(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    if "anyOf" in field:
        return " | ".join(_kind(f) for f in field["anyOf"] if f.get("type") != "null")
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    if field.get("type") == "object":
        return "mapping"
    return str(field.get("type", "any"))
