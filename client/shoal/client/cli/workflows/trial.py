"""``shoal test``: run one task of a definition here, without a cluster."""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.exits import ExitStatus
from shoal.client.cli.terminal.options import Json

if TYPE_CHECKING:
    from shoal.client.trial.execution import Tried
    from shoal.client.trial.inputs import MaskedInputs, TaskInputs
    from shoal.core.definition.environments import EnvironmentSpec
    from shoal.core.definition.model import WorkflowSpec


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(name="test", rich_help_panel="Workflows")(try_task)


def try_task(
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="A task, also as WORKFLOW/TASK or NAME/TASK.")
    ],
    file: Annotated[
        Path,
        typer.Option("--file", "-f", metavar="FILE", help="The definition: .yaml, .json or .py."),
    ],
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--parameter",
            metavar="KEY=VALUE",
            help="A parameter of the workflow, the project or a task upstream; repeatable.",
        ),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(
            "--date",
            "--logical-time",
            metavar="TIME",
            help="The time the run is for, such as 2026-11-21; default: now.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what the task would get; do not run it.")
    ] = False,
    resources: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="A folder with the resources of the project, by their paths.",
        ),
    ] = None,
    environment_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="The environment that the task names, as `shoal environment show --json` has it.",
        ),
    ] = None,
    no_environment: Annotated[
        bool, typer.Option("--no-environment", help="Run the task without its environment.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run one task here, without a cluster, and show every value that it gets.

    Secrets come from the environment: SHOAL_SECRET_name, data sources as JSON from
    SHOAL_DATA_SOURCE_name. Nothing is stored, and nothing runs before or after the task.
    """
    from shoal.client.cli.terminal.options import parse_parameters
    from shoal.client.trial.inputs import Given, TaskInputs
    from shoal.core.runs.run import WorkflowPlan

    workflow, _, name = task.rpartition("/")
    spec = _workflow(file, workflow, name)
    moment = _moment(date, spec.timezone)
    given = Given(
        parameters=parse_parameters(parameter or ()),
        variables=os.environ,
        resources=resources,
        environment=_environment(environment_file, no_environment),
        no_environment=no_environment,
    )
    inputs = TaskInputs(WorkflowPlan.of(spec), name, moment, given)
    rendered = inputs.rendered
    if not as_json:
        _show(rendered, spec, moment)
    if dry_run:
        _conclude(rendered, None, as_json)
        return
    tried = _run(inputs, as_json)
    _conclude(rendered, tried, as_json)
    if tried.exit_code:
        raise typer.Exit(ExitStatus.FAILED)


def _workflow(file: Path, workflow: str, task: str) -> "WorkflowSpec":
    """Return the workflow of a file that has the task. Raises NotFound, InvalidDefinition."""
    from shoal.client.cli.workflows.apply import show_problems
    from shoal.client.errors import NotFound
    from shoal.client.sources.definitions import load_definitions
    from shoal.core.checks.workflow import InvalidDefinition
    from shoal.core.hints import Hints

    try:
        loaded = load_definitions([file])
    except InvalidDefinition as invalid:
        show_problems(invalid.problems, "nothing was run")
        raise typer.Exit(ExitStatus.USAGE) from None
    specs = [one.spec for one in loaded.definitions if workflow in ("", one.spec.name)]
    found = [spec for spec in specs if any(each.name == task for each in spec.tasks)]
    if len(found) == 1:
        return found[0]
    if found:
        choices = ", ".join(f"{spec.name}/{task}" for spec in found)
        raise NotFound(f"several workflows of {file} have a task {task!r}: say which, {choices}")
    if workflow and not specs:
        names = [one.spec.name for one in loaded.definitions]
        raise NotFound(f"{file} has no workflow {workflow!r}{Hints().of(workflow, names)}")
    names = [each.name for spec in specs for each in spec.tasks]
    raise NotFound(f"{file} has no task {task!r}{Hints().of(task, names)}")


def _environment(file: Path | None, none: bool) -> "EnvironmentSpec | None":
    from shoal.client.cli.workflows.apply import show_problems
    from shoal.client.sources.object_files import read_environment
    from shoal.core.checks.workflow import InvalidDefinition

    if file is None:
        return None
    if none:
        raise typer.BadParameter("--environment-file and --no-environment exclude each other")
    try:
        return read_environment(file)
    except InvalidDefinition as invalid:
        show_problems(invalid.problems, "nothing was run")
        raise typer.Exit(ExitStatus.USAGE) from None


def _moment(text: str | None, timezone: str) -> datetime:
    from zoneinfo import ZoneInfo

    from shoal.client.cli.terminal.options import require_logical_time

    zone = ZoneInfo(timezone)
    if text is None:
        return datetime.now(UTC).astimezone(zone)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time; write 2026-11-21, 2026-11-21T06:00 or 2026-11-21T06:00+01:00",
            param_hint="--date",
        ) from None
    moment = moment.replace(tzinfo=zone) if moment.tzinfo is None else moment
    require_logical_time(moment, "--date")
    return moment


def _run(inputs: "TaskInputs", as_json: bool) -> "Tried":
    """Run the task; what it writes goes to standard output, with ``--json`` to standard error."""
    from shoal.client.discovery import data_folder
    from shoal.client.trial.execution import try_task
    from shoal.runtime.settings import load_settings
    from shoal.worker.settings import WorkerSettings

    settings = load_settings(WorkerSettings, "worker", data_folder(None)).for_task_types()
    stream = sys.stderr.buffer if as_json else sys.stdout.buffer

    def write(part: bytes) -> None:
        stream.write(part)
        stream.flush()

    return asyncio.run(try_task(inputs, write, settings))


def _show(rendered: "MaskedInputs", spec: "WorkflowSpec", moment: datetime) -> None:
    """Show what the task gets, on standard error: its output is the result."""
    import json

    from rich.text import Text

    from shoal.client.cli.terminal.output import err

    head = Text.assemble(
        (f"{spec.project}/{spec.name}/", "dim"),
        (rendered.task, "bold"),
        f"  {rendered.type}  for {moment.isoformat(timespec='seconds')} ({spec.timezone})",
    )
    err().print(head, soft_wrap=True)
    for title, values in (("parameters", rendered.parameters), ("params", rendered.params)):
        err().print(Text(title, "dim"))
        for name, value in values.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines = text.splitlines() or [""]
            shown = lines[0] if len(lines) == 1 else "".join(f"\n      {line}" for line in lines)
            err().print(Text.assemble("  ", (name, "cyan"), f" = {shown}"), soft_wrap=True)
        if not values:
            err().print(Text("  none", "dim"))

    for name in _unfilled(rendered):
        err().print(Text(f"nothing fills ${{{name}}}; give it with -p {name}=…", "yellow"))


def _unfilled(rendered: "MaskedInputs") -> list[str]:
    """Return the names that placeholders of the parameters ask for in vain."""
    import re

    texts = " ".join(rendered.parameters.values())
    return sorted(set(re.findall(r"\$\{([A-Za-z_][A-Za-z0-9_.]*)\}", texts)))


def _conclude(rendered: "MaskedInputs", tried: "Tried | None", as_json: bool) -> None:
    from dataclasses import asdict

    from shoal.client.cli.terminal.output import print_json, say
    from shoal.core.timing.durations import format_duration

    if as_json:
        result = None if tried is None else asdict(tried)
        print_json({**asdict(rendered), "result": result})
    elif tried is None:
        say("not run")
    elif tried.again_s is not None:
        when = format_duration(round(tried.again_s, 1))
        say(f"not yet: {tried.reason}; the task would look again in {when}", "yellow")
    elif tried.exit_code:
        say(f"FAILED: {tried.reason}", "red")
    else:
        for name, value in tried.outputs.items():
            say(f"output {name} = {value}")
        for one in tried.files:
            say(f"would publish {one.file} ({one.size:,} bytes) as {one.path}")
        say("SUCCEEDED", "green")
