"""``shoal resource``: files of a project that its tasks use, in versions."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.exits import ExitStatus
from shoal.client.cli.terminal.options import DEFAULT_PROJECT, Data, Json, Project, projects_of

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import ResourceOut
    from shoal.core.definition.resources import ResourceLocator

group = typer.Typer(
    name="resource",
    no_args_is_help=True,
    help="Files of a project that its tasks use. Each change makes a version; a run goes on with "
    "those that were there when it began.",
)

_PIECE = 1 << 20  # bytes
LARGEST_TEXT = 1 << 20  # bytes of a file that is edited or compared

OfPath = Annotated[
    str,
    typer.Argument(metavar="PATH", help="Path in the project, also as PATH@VERSION."),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Workflows")


@group.command()
def put(
    local: Annotated[
        Path, typer.Argument(metavar="FILE|FOLDER", help="What to upload; a folder with all in it.")
    ],
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="Path in the project; default: the name. Into a folder: FOLDER/."
        ),
    ] = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Upload a file, or all files of a folder. What has not changed makes no new version.

    Links to folders, dangling links, pipes and sockets in a folder are skipped and named; the exit
    status is 1 then.
    """
    from shoal.client.cli.terminal.appearance import one_line
    from shoal.client.cli.terminal.output import err, print_json, progress, say
    from shoal.client.cli.workflows.resource_files import files_of
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    found = files_of(local, path)
    files = found.files
    stored: list[ResourceOut] = []
    with ShoalClient.connect(data) as client, progress("uploading") as bar:
        task = bar.add_task("", total=len(files))
        before = _versions(client, home, list(files))
        for target, file in files.items():
            stored.append(client.upload(home, target, file))
            bar.advance(task)
    if as_json:
        print_json(stored)
    else:
        for one in stored:
            same = before.get(one["path"]) == one["version"]
            say(f"{home}/{one['path']}@{one['version']}{' has not changed' if same else ''}")
    for line in found.skipped:
        err().print(one_line(f"not uploaded: {line}"), style="red", soft_wrap=True)
    if found.skipped:
        raise typer.Exit(ExitStatus.FAILED)


def _versions(client: "ShoalClient", home: str, paths: list[str]) -> dict[str, int]:
    """Return the newest versions of files before they are uploaded."""
    if len(paths) == 1:
        one = client.find(client.get_resource, home, paths[0])
        return {one["path"]: one["version"]} if one else {}
    folder = paths[0].partition("/")[0]
    listed = client.pages(client.list_resources, home, folder=folder or None)
    return {one["path"]: one["version"] for one in client.find(list, listed) or ()}


@group.command()
def get(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="PATH, PATH@VERSION, or FOLDER/ with all files in it."),
    ],
    local: Annotated[
        str,
        typer.Argument(
            metavar="FILE|FOLDER|-", help="Where to; default: its name here. -: standard output."
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    project: Project = None,
    data: Data = None,
) -> None:
    """Download a file, or all files of a folder."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.cli.workflows.resource_files import reference_of, write
    from shoal.client.rest.client import ShoalClient

    home, reference = project or DEFAULT_PROJECT, reference_of(path)
    if local == "-" and reference.is_folder:
        raise typer.BadParameter("a folder has no place on standard output; name one of its files")
    with ShoalClient.connect(data) as client:
        if local == "-":
            with client.download_resource(
                home, reference.path, version=reference.version
            ) as answer:
                for piece in answer.iter_bytes(_PIECE):
                    sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return
        targets = _targets(client, home, reference, local)
        if not force and (there := [one for one in targets.values() if one.exists()]):
            raise typer.BadParameter(f"{there[0]} is there already; replace it with --force")
        for source, target in targets.items():
            with client.download_resource(home, source, version=reference.version) as answer:
                write(target, answer.iter_bytes(_PIECE))
            say(f"{target}")


def _targets(
    client: "ShoalClient", home: str, reference: "ResourceLocator", local: str
) -> dict[str, Path]:
    """Return where each file goes, by its path in the project. Raises NotFound."""
    from shoal.client.errors import NotFound

    name = reference.path.rpartition("/")[2]
    if not reference.is_folder:
        target = Path(local or name)
        return {reference.path: target / name if target.is_dir() else target}
    base = Path(local or name)
    found = [
        one["path"] for one in client.pages(client.list_resources, home, folder=reference.path)
    ]
    if not found:
        raise NotFound(f"project {home} has no files below {reference}")
    return {one: base / one.removeprefix(f"{reference.path}/") for one in found}


@group.command("list")
def list_resources(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Only what is below it.")] = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the newest versions of files."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        homes = projects_of(client, project)
        found = [
            one
            for home in homes
            for one in client.pages(client.list_resources, home, folder=folder.rstrip("/") or None)
        ]
    if as_json:
        print_json(found)
    elif not found:
        say("no resources; upload one with `shoal resource put FILE`")
    else:
        _print(found, ["project", "path", "version>", "size>", "changed"])


@group.command()
def show(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Path in the project.")],
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the versions of a file, the newest first."""
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_resource_versions, project or DEFAULT_PROJECT, path))
    if as_json:
        print_json(found)
    else:
        _print(found, ["project", "path", "version>", "size>", "changed", "until", "run"])


def _print(found: "list[ResourceOut]", columns: list[str]) -> None:
    from datetime import UTC, datetime

    from rich.filesize import decimal

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out
    from shoal.client.cli.terminal.tables import TextTable

    now = datetime.now(UTC)
    shown = TextTable(columns)
    for one in found:
        cells = [one["project"], one["path"], str(one["version"]), decimal(one["size"])]
        cells += [
            clock(one["created_at"], now),
            clock(one["ended_at"], now) if one["ended_at"] else "",
            str(one["instance_id"] or ""),
        ]
        shown.add(*cells[: len(columns)])
    out().print(shown.table(out().width))


@group.command()
def diff(
    path: OfPath,
    other: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="The newer one; default: the newest version of the first."
        ),
    ] = "",
    project: Project = None,
    data: Data = None,
) -> None:
    """Show what has changed in a text file, by default with its newest version.

    Exit status 1 says that there is a difference.
    """
    from difflib import unified_diff

    from shoal.client.cli.workflows.resource_files import reference_of
    from shoal.client.rest.client import ShoalClient

    home, older = project or DEFAULT_PROJECT, reference_of(path)
    with ShoalClient.connect(data) as client:
        newer = client.get_resource(home, older.path) if not other else None
        second = reference_of(other) if newer is None else _at(newer)
        if older.version is None and newer is not None:
            older = _before(client, home, newer)
        before, after = (_text(client, home, one) for one in (older, second))
    changes = list(
        unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            fromfile=str(older),
            tofile=str(second),
        )
    )
    for line in changes:
        print(line, end="" if line.endswith("\n") else "\n\\ no line end\n")
    if changes:
        raise typer.Exit(1)


def _at(found: "ResourceOut") -> "ResourceLocator":
    from shoal.core.definition.resources import ResourceLocator

    return ResourceLocator(found["path"], found["version"])


def _before(client: "ShoalClient", home: str, newest: "ResourceOut") -> "ResourceLocator":
    """Return the version before the newest one. Raises NotFound."""
    from shoal.client.errors import NotFound

    for one in client.pages(client.list_resource_versions, home, newest["path"]):
        if one["version"] < newest["version"]:
            return _at(one)
    raise NotFound(f"{home}/{newest['path']} has one version only: there is nothing to compare")


def _text(client: "ShoalClient", home: str, reference: "ResourceLocator") -> str:
    """Return a version's content as text. Raises BadParameter."""
    content = bytearray()
    with client.download_resource(home, reference.path, version=reference.version) as answer:
        for piece in answer.iter_bytes(_PIECE):
            content += piece
            if len(content) > LARGEST_TEXT:
                raise typer.BadParameter(f"{reference} has more than {LARGEST_TEXT >> 20} MiB")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{reference} is not UTF-8 text") from None


@group.command()
def edit(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Path in the project.")],
    project: Project = None,
    data: Data = None,
) -> None:
    """Change a text file in the editor that $VISUAL or $EDITOR names.

    Refused if another user has changed it meanwhile; your text is kept in a file then.
    """
    from shoal.client.cli.terminal.output import say
    from shoal.client.cli.workflows.resource_files import edited, reference_of
    from shoal.client.errors import ApiProblem
    from shoal.client.rest.client import ShoalClient

    home, reference = project or DEFAULT_PROJECT, reference_of(path)
    with ShoalClient.connect(data) as client:
        before = client.get_resource(home, reference.path)
        text = _text(client, home, _at(before))
        changed = edited(text, Path(reference.path).name)
        if changed == text:
            say("nothing has changed")
            return
        try:
            stored = client.upload(
                home, reference.path, changed.encode(), expected_version=before["version"]
            )
        except ApiProblem:
            kept = Path(f"{Path(reference.path).name}.mine")
            kept.write_text(changed, encoding="utf-8")
            say(f"your text is in {kept}")
            raise
    say(f"{home}/{stored['path']}@{stored['version']}")


@group.command()
def delete(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Files, and folders as FOLDER/.")
    ],
    project: Project = None,
    data: Data = None,
) -> None:
    """Delete files, or folders with all in them. Runs that have started go on with them."""
    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import say
    from shoal.client.cli.workflows.resource_files import reference_of
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    references = [reference_of(path) for path in paths]
    if pinned := [one for one in references if one.version is not None]:
        raise typer.BadParameter(
            f"{pinned[0]}: a version cannot be deleted by itself; old ones go by their age"
        )
    with ShoalClient.connect(data) as client:
        for one in references:
            count = client.delete_resource(home, str(one))["files"]
            say(f"{home}/{one}: deleted {plural(count, 'file')}")
