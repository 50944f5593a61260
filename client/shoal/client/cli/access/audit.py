"""``shoal audit``: who has done what, and whether anybody has changed that since."""

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.client.cli.exits import ExitStatus
from shoal.client.cli.terminal.options import Data, Json, Limit, Project

_MOST_LINKS = 500  # of one answer

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import AuditLinkOut, Outcome
    from shoal.core.access.audit.chain import ChainHead

group = typer.Typer(
    name="audit",
    no_args_is_help=True,
    help="Show who has done what. Changes to the log are detected.",
)

Heads = Annotated[
    list[str] | None,
    typer.Option(
        "--head", metavar="POSITION:HASH", help="A head that was noted earlier; repeatable."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Access")


@group.command("list")
def list_entries(
    project: Project = None,
    principal: Annotated[str | None, typer.Option(metavar="NAME", help="Who did it.")] = None,
    action: Annotated[
        str | None, typer.Option(metavar="NOUN.VERB", help="Such as secret.set, or 'secret.*'.")
    ] = None,
    refused: Annotated[bool, typer.Option("--refused", help="Only what was refused.")] = False,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="With an offset.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="With an offset.")] = None,
    limit: Limit = 50,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List what was changed or refused, the newest first. Owners of a project name it."""
    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.errors import ApiProblem
    from shoal.client.rest.client import ShoalClient

    wanted: Outcome | None = "refused" if refused else None
    with ShoalClient.connect(data) as client:
        try:
            listed = client.pages(
                client.list_audit,
                project=project,
                principal=principal,
                action=action,
                outcome=wanted,
                since=since,
                until=until,
            )
            found = list(islice(listed, limit))
        except ApiProblem as error:
            if error.status != 403 or project is None:
                raise
            listed = client.pages(
                client.list_project_audit,
                project,
                principal=principal,
                action=action,
                outcome=wanted,
                since=since,
                until=until,
            )
            found = list(islice(listed, limit))
    if as_json:
        print_json(found)
        return
    if not found:
        say("nothing of that kind was done")
        return
    now = datetime.now(UTC)
    shown = TextTable(["at", "who", "from", "action", "project", "object~", "outcome", "more>"])
    for one in found:
        count = one["detail"].get("count", "")
        outcome = "" if one["outcome"] == "done" else one["outcome"]
        shown.add(
            clock(one["at"], now),
            one["principal"],
            one["address"],
            one["action"],
            one["project"],
            one["object"],
            outcome,
            str(count),
        )
    out().print(shown.table(out().width, spare=("from", "project")))


@group.command()
def verify(
    head: Heads = None,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="Of `shoal audit export`."),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Compute all hashes anew, here, and say what does not fit.

    Keep the head that it prints, outside of the cluster: with it the next time finds also that the
    end was cut off, or everything written anew. Exit status 1 if anything was found.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient
    from shoal.core.access.audit.chain import Verifier

    verifier = Verifier(_heads(head))
    unlinked = 0
    if file is not None:
        _read(verifier, _lines(file))
    else:
        with ShoalClient.connect(data) as client:
            unlinked = client.get_audit_head()["unlinked"]
            _read(verifier, _links(client))
    findings = verifier.end()
    if unlinked:
        findings.append(f"{unlinked} entries of more than a minute ago are in no link")
    last = None if verifier.head is None else str(verifier.head)
    if as_json:
        print_json({"entries": verifier.count, "head": last, "findings": findings})
    else:
        for one in findings:
            say(f"found: {one}")
        if not findings:
            say(f"{verifier.count} entries, nothing was changed; head {last or 'none yet'}")
    if findings:
        raise typer.Exit(ExitStatus.FAILED)


@group.command()
def export(
    after: Annotated[int, typer.Option(metavar="POSITION", min=0, help="What is behind it.")] = 0,
    data: Data = None,
) -> None:
    """Print all entries with their hashes, one JSON object a line, the oldest first."""
    import json

    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        for one in _links(client, after):
            sys.stdout.write(json.dumps(one, sort_keys=True) + "\n")


@group.command()
def prune(
    older_than: Annotated[str, typer.Option(metavar="TIME", help="Such as 400d; at least 1d.")],
    data: Data = None,
) -> None:
    """Remove old entries. An entry says up to where, so the rest can still be verified."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient
    from shoal.core.timing.durations import InvalidDuration, parse_duration

    try:
        length = timedelta(seconds=parse_duration(older_than))
    except InvalidDuration as error:
        raise typer.BadParameter(str(error), param_hint="--older-than") from None
    before = (datetime.now(UTC) - length).isoformat()
    removed = 0
    with ShoalClient.connect(data) as client:
        while some := client.prune_audit({"before": before})["removed"]:
            removed += some
    say(f"removed {removed} entries")


def _links(client: "ShoalClient", after: int = 0) -> "Iterator[AuditLinkOut]":
    """Yield all entries with their hashes, the oldest first."""
    while found := client.get_audit_links(after=after, limit=_MOST_LINKS):
        yield from found
        after = found[-1]["position"]


def _heads(given: list[str] | None) -> "list[ChainHead]":
    from shoal.core.access.audit.chain import ChainHead

    try:
        return [ChainHead.parse(text) for text in given or ()]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--head") from None


def _read(verifier: Any, links: Iterable[Any]) -> None:
    for link in links:
        verifier.read(link)


def _lines(file: Path) -> Iterator[Any]:
    import json

    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                found = json.loads(line)
                if not {"position", "hash", "previous", "entry"} <= found.keys():
                    raise ValueError("it is not a link")
            except (ValueError, AttributeError) as error:
                raise typer.BadParameter(f"line {number} of {file}: {error}") from None
            yield found
