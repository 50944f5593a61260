"""``shoal purge``: history that is no longer needed."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json, Project, find_workflow

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import PurgeOut, StoresOut

_POLL_S = 0.5  # the masters poll every few seconds


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command(rich_help_panel="Cluster")(purge)


def purge(
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Only what ended longer ago, such as 30d or 12h; default: what the settings say.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, delete nothing.")] = False,
    project: Project = None,
    workflow: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only of this workflow, also PROJECT/NAME.")
    ] = None,
    even_if_not_exported: Annotated[
        bool,
        typer.Option(
            "--even-if-not-exported",
            help="Also what the exported history does not have yet, and never will then.",
        ),
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait until the masters are done.")] = True,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Delete finished instances, with their attempts, events, commands, and finished backfills.

    Masters do so by themselves, by the settings keep_…_days. What is not finished, or needed by
    something that is not, always stays. With an exported history what it does not have for certain
    yet stays, too, and is counted.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    before = _before(older_than)
    with ShoalClient.connect(data) as client:
        if workflow is not None:
            project, workflow = find_workflow(client, workflow, project)
        asked = client.create_purge(
            {
                "dry_run": dry_run,
                "before": before,
                "project": project,
                "workflow": workflow,
                "even_if_not_exported": even_if_not_exported,
            }
        )
        if wait:
            asked = _followed(client, asked)
        stores = client.get_stores()
    if as_json:
        print_json({**asked, "stores": stores})
        return
    _print(asked, stores)
    if asked["finished_at"] is None:
        done = f"{asked['partitions_done']} of {asked['partitions']} partitions are done"
        say(f"purge {asked['id']} goes on; {done}")


def _before(older_than: str | None) -> str | None:
    from shoal.core.timing.durations import InvalidDuration, parse_duration

    if older_than is None:
        return None
    try:
        length = timedelta(seconds=parse_duration(older_than))
        return (datetime.now(UTC) - length).isoformat()
    except InvalidDuration as error:
        raise typer.BadParameter(str(error), param_hint="--older-than") from None
    except OverflowError:
        text = f"{older_than} ago is before the first date that there is; name a shorter time"
        raise typer.BadParameter(text, param_hint="--older-than") from None


def _followed(client: "ShoalClient", asked: "PurgeOut") -> "PurgeOut":
    """Show how far the masters have come, until they are done."""
    import time

    from shoal.client.cli.terminal.output import progress

    with progress("partitions") as shown:
        bar = shown.add_task("", total=asked["partitions"])
        while asked["finished_at"] is None:
            shown.update(bar, completed=asked["partitions_done"])
            time.sleep(_POLL_S)
            asked = client.get_purge(asked["id"])
    return asked


def _print(asked: "PurgeOut", stores: "StoresOut") -> None:
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out
    from shoal.client.cli.terminal.tables import TextTable

    sizes = {one["name"]: one for one in stores["stores"]}
    shown = TextTable(["store", "would go>" if asked["dry_run"] else "gone>", "rows>", "size>"])
    for name, count, table in (
        ("instances", asked["instances"], "workflow_instance"),
        ("attempts", asked["attempts"], "task_instance"),
        ("events", asked["events"], "event"),
        ("commands", asked["commands"], "command"),
        ("backfills", asked["backfills"], "backfill"),
    ):
        store = sizes.get(table)
        rows = "" if store is None or store["rows"] is None else f"{store['rows']:,}"
        size = "" if store is None else _size(store["bytes"])
        shown.add(name, f"{count:,}", rows, size)
    out().print(shown.table(out().width))
    if asked["oldest"] is not None:
        out().print(Text(f"the oldest instance ended {clock(asked['oldest'], datetime.now(UTC))}"))
    if held := asked.get("held"):
        text = (
            f"{held:,} rows stay until they were exported: {asked.get('held_because')}; "
            "`shoal insight export` exports them now, --even-if-not-exported does without"
        )
        out().print(Text(text, "yellow"))
    whole = f"the database ({stores['kind']}) has {_size(stores['bytes'])}"
    if stores["free_bytes"] is not None:
        whole += f", of which {_size(stores['free_bytes'])} are free for what comes"
    out().print(Text(whole, "dim"))


def _size(number: int | None) -> str:
    return "" if number is None else f"{number / 2**20:,.1f} MiB"
