"""``shoal apply``: from files to published versions."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from rich.text import Text

    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import ChangeOut, PublishOut
    from shoal.client.sources.definitions import Definition, Loaded
    from shoal.core.checks.workflow import DefinitionProblem

_LONGEST_VALUE = 60  # characters shown of a value
_MOST_CHANGES = 40  # lines shown for one workflow
_MOST_TEXT_LINES = 12  # of a text that changed


@dataclass(frozen=True)
class ApplyPlan:
    """What publishing a definition would do."""

    definition: "Definition"
    answer: "PublishOut"

    @property
    def changed(self) -> bool:
        """Whether there would be a new version."""
        return self.answer["created"]

    @property
    def is_new(self) -> bool:
        """Whether the workflow does not exist yet."""
        return self.changed and self.answer["version"] == 1


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command(rich_help_panel="Workflows")(apply)


def apply(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Definitions: .yaml, .json, .py files or folders."),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change; publish nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Check workflow definitions, show what is new, publish what changed.

    All problems of all files are reported at once. On a terminal there is a question before
    anything is published.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient
    from shoal.core.checks.workflow import InvalidDefinition

    try:
        loaded = _load(paths)
        with ShoalClient.connect(data) as client:
            plans = _plan(client, loaded.definitions)
            changed = [plan for plan in plans if plan.changed]
            if not as_json:
                _show(plans, loaded)
            publish = bool(changed) and not dry_run
            if publish and not (yes or as_json or _agreed(len(changed))):
                say("nothing was published")
                raise typer.Exit(1)
            answers = _publish(client, plans) if publish else [plan.answer for plan in plans]
    except InvalidDefinition as invalid:
        _show_problems(invalid.problems, as_json)
        raise typer.Exit(2) from None
    if as_json:
        result = [{**answer, "dry_run": dry_run} for answer in answers]
        print_json({"workflows": result, "skipped": [str(path) for path in loaded.skipped]})
    else:
        for answer in answers:
            for warning in answer.get("warnings", []):
                say(f"warning: {answer['project']}/{answer['name']}: {warning}")
        _conclude(plans, dry_run)


def _load(paths: Sequence[Path]) -> "Loaded":
    from shoal.client.cli.terminal.output import progress
    from shoal.client.sources.definitions import load_definitions

    with progress("checking") as shown:
        bar = shown.add_task("", total=None)
        return load_definitions(
            paths, lambda done, total: shown.update(bar, completed=done, total=total)
        )


def _plan(client: "ShoalClient", definitions: "Sequence[Definition]") -> list[ApplyPlan]:
    """Ask the API what would happen. Raises InvalidDefinition with its objections, located."""
    from shoal.client.cli.terminal.output import progress
    from shoal.core.checks.workflow import InvalidDefinition

    plans: list[ApplyPlan] = []
    problems: list[DefinitionProblem] = []
    with progress("comparing") as shown:
        for definition in shown.track(definitions):
            try:
                plans.append(
                    ApplyPlan(definition, publish_definition(client, definition, dry_run=True))
                )
            except InvalidDefinition as invalid:
                problems += invalid.problems
    if problems:
        raise InvalidDefinition(problems)
    return plans


def publish_definition(
    client: "ShoalClient", definition: "Definition", *, dry_run: bool = False
) -> "PublishOut":
    """Publish one definition. What the API objects to is raised as InvalidDefinition with the
    file and line."""
    from shoal.client.errors import ApiProblem
    from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition

    try:
        return client.publish(definition.spec, dry_run=dry_run)
    except ApiProblem as refused:
        if refused.status != 422 or not refused.errors:
            raise
        found = [DefinitionProblem(_path(error.field), error.message) for error in refused.errors]
        raise InvalidDefinition([definition.locate(problem) for problem in found]) from refused


def _path(field: str) -> tuple[str | int, ...]:
    """Return ``tasks[2].params`` as the path ("tasks", 2, "params")."""
    import re

    parts = re.findall(r"\[(\d+)\]|([^.\[\]]+)", field)
    return tuple(int(index) if index else name for index, name in parts)


def _publish(client: "ShoalClient", plans: Sequence[ApplyPlan]) -> "list[PublishOut]":
    from shoal.client.cli.terminal.output import progress

    with progress("publishing") as shown:
        return [
            publish_definition(client, plan.definition) if plan.changed else plan.answer
            for plan in shown.track(plans)
        ]


def _agreed(count: int) -> bool:
    """Ask on a terminal; elsewhere the call itself is the answer."""
    import sys

    from shoal.client.cli.terminal.appearance import plural

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    return typer.confirm(f"Publish {plural(count, 'workflow')}?", default=True, err=True)


# -- output ----------------------------------------------------------------------------------


def _show_problems(problems: "Sequence[DefinitionProblem]", as_json: bool) -> None:
    from shoal.client.cli.terminal.output import print_json

    if as_json:
        found = [{"field": problem.field, **asdict(problem)} for problem in problems]
        print_json({"problems": [{k: v for k, v in p.items() if k != "path"} for p in found]})
    show_problems(problems, "nothing was published")


def show_problems(problems: "Sequence[DefinitionProblem]", conclusion: str) -> None:
    """Show what is wrong with definitions, file by file, and what follows."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import err

    files: dict[str, list[DefinitionProblem]] = {}
    for problem in problems:
        files.setdefault(problem.file or "", []).append(problem)
    for found_in in files.values():
        for problem in sorted(found_in, key=lambda problem: problem.line or 0):
            field = f"{problem.field}: " if problem.path else ""
            place = (f"{problem.file}:{problem.line}: ", "bold")
            line = Text.assemble(place, (field, "cyan"), problem.message)
            err().print(line, soft_wrap=True)
    where = f" in {plural(len(files), 'file')}" if len(files) > 1 else ""
    total = Text(f"{plural(len(problems), 'problem')}{where}, {conclusion}", "red")
    err().print(total)


def _show(plans: Sequence[ApplyPlan], loaded: "Loaded") -> None:
    from shoal.client.cli.terminal.output import err, out

    quiet = [plan for plan in plans if not plan.changed]
    many = len(quiet) > 10
    for plan in plans:
        if plan.changed or not many:
            for line in plan_lines(plan):
                out().print(line, soft_wrap=True)
    if many:
        out().print(f"[dim]= {len(quiet):,} workflows are unchanged[/]")
    if loaded.skipped:
        names = ", ".join(str(path) for path in loaded.skipped[:3])
        more = f" and {len(loaded.skipped) - 3} more" if len(loaded.skipped) > 3 else ""
        err().print(f"no definitions, skipped: {names}{more}", style="dim", soft_wrap=True)


def plan_lines(plan: ApplyPlan) -> "Iterator[Text]":
    """Yield what would happen to one workflow, with its changes."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import plural

    spec, answer = plan.definition.spec, plan.answer
    name = f"{spec.project}/{spec.name}"
    if not plan.changed:
        yield Text(f"= {name}  unchanged, version {answer['version']}", "dim")
        return
    if plan.is_new:
        what = f"  new, {plural(len(spec.tasks), 'task')}"
        yield Text.assemble(("+ ", "green"), (name, "bold"), what)
        return
    version = answer["version"]
    yield Text.assemble(("~ ", "yellow"), (name, "bold"), f"  version {version - 1} → {version}")
    lines = [line for change in answer["diff"] for line in _change_lines(change)]
    yield from lines[:_MOST_CHANGES]
    if len(lines) > _MOST_CHANGES:
        yield Text(f"    … {len(lines) - _MOST_CHANGES:,} more lines", "dim")


def _change_lines(change: "ChangeOut") -> "Iterator[Text]":
    from rich.text import Text

    before, after, path = change["before"], change["after"], change["path"]
    match change["op"]:
        case "added":
            yield Text.assemble(("    + ", "green"), path, ("  " + _short(after), "green"))
        case "removed":
            yield Text.assemble(("    - ", "red"), path, ("  " + _short(before), "red"))
        case _ if _is_long(before) and _is_long(after):
            yield Text.assemble(("    ~ ", "yellow"), path)
            yield from _text_lines(before, after)
        case _:
            yield Text.assemble(
                ("    ~ ", "yellow"), path, "  ", (_short(before), "red"), " → ",
                (_short(after), "green"),
            )  # fmt: skip


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and ("\n" in value or len(value) > _LONGEST_VALUE)


def _text_lines(before: str, after: str) -> "Iterator[Text]":
    """Yield the lines of a text that changed."""
    from difflib import unified_diff

    from rich.text import Text

    styles = {"+": "green", "-": "red", "@": "dim"}
    lines = list(unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""))[2:]
    for line in lines[:_MOST_TEXT_LINES]:
        yield Text(f"        {line}", styles.get(line[:1], ""))
    if len(lines) > _MOST_TEXT_LINES:
        yield Text(f"        … {len(lines) - _MOST_TEXT_LINES:,} more lines", "dim")


def _short(value: Any) -> str:
    """Return a value on one line."""
    import json

    if isinstance(value, dict) and isinstance(value.get("type"), str) and "name" in value:
        return str(value["type"])
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def _conclude(plans: Sequence[ApplyPlan], dry_run: bool) -> None:
    from shoal.client.cli.terminal.output import say

    new = sum(plan.is_new for plan in plans)
    changed = sum(plan.changed for plan in plans) - new
    unchanged = len(plans) - new - changed
    counts = ((new, "new"), (changed, "changed"), (unchanged, "unchanged"))
    text = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    say(f"dry run: {text}; nothing was published" if dry_run else text)
