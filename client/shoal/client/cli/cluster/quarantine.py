"""``shoal quarantine``: what a part of Shoal cannot work with."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, cast

import typer

from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from typing import TypedDict

    from shoal.client.rest.operations.generated.types import (
        ItemConsumer,
        ItemKind,
        QuarantinedRef,
    )

    class _Query(TypedDict):
        consumer: ItemConsumer | None
        kind: ItemKind | None
        project: str | None


group = typer.Typer(
    name="quarantine",
    no_args_is_help=True,
    help="What a part of Shoal cannot work with: list it, try it again, discard it.",
)

Consumer = Annotated[
    str, typer.Argument(metavar="CONSUMER", help="masters, alerts or history, as listed.")
]
Kind = Annotated[str, typer.Argument(metavar="KIND", help="Such as event, as listed.")]
Item = Annotated[str, typer.Argument(metavar="ITEM", help="The id or name, as listed.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Cluster")


@group.command("list")
def list_items(
    consumer: Annotated[
        str | None,
        typer.Option(metavar="CONSUMER", help="Only of this consumer: masters, alerts or history."),
    ] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only of this kind, such as event.")
    ] = None,
    project: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only of this project; default: of all.")
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List quarantined items, the one that failed last first."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    # The API says which values there are.
    query = cast("_Query", {"consumer": consumer, "kind": kind, "project": project})
    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_quarantined_items, **query))
    if as_json:
        print_json(found)
        return
    if not found:
        say("nothing is quarantined")
        return
    now = datetime.now(UTC)
    shown = TextTable(["consumer", "kind", "item", "last", "tries>", "state", "reason"])
    for one in found:
        state = "skipped" if one["is_skipped"] else "held"
        shown.add(
            one["consumer"],
            one["kind"],
            one["item"],
            clock(one["last_at"], now),
            str(one["tries"]),
            Text("retry requested" if one.get("retry_at") else state, "yellow"),
            one["reason"],
        )
    out().print(shown.table(out().width))


@group.command("retry")
def retry(
    consumer: Consumer, kind: Kind, item: Item, data: Data = None, as_json: Json = False
) -> None:
    """Try an item again: an event becomes alerts, a message is sent, a run continues.

    A row of the history is exported with the next export.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.retry_quarantined_item(_named(consumer, kind, item))
    if as_json:
        print_json(found)
        return
    say(f"{kind} {item} is tried again; if it fails, `shoal quarantine list` shows it again")


@group.command("discard")
def discard(consumer: Consumer, kind: Kind, item: Item, data: Data = None) -> None:
    """Forget an item of the alert servers or of the history.

    Its event makes no alert, its alert no reminder, its row is not part of the history.
    """
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        client.discard_quarantined_item(_named(consumer, kind, item))
    say(f"{kind} {item} is discarded")


def _named(consumer: str, kind: str, item: str) -> "QuarantinedRef":
    return cast("QuarantinedRef", {"consumer": consumer, "kind": kind, "item": item})
