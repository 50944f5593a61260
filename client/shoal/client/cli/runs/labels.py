"""``shoal label``, and the option ``--label`` of commands that start runs or list them."""

from collections.abc import Sequence
from typing import Annotated

import typer

from shoal.client.cli.terminal.options import Data, InstanceId, Json

Labels = Annotated[
    list[str] | None,
    typer.Option("--label", "-l", metavar="KEY=VALUE", help="A label of the run; repeatable."),
]


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Runs")(label)


def parse_labels(given: Sequence[str] | None) -> dict[str, str]:
    """Return labels by key. Raises BadParameter."""
    found = {}
    for text in given or ():
        key, separator, value = text.partition("=")
        if not (key and separator):
            raise typer.BadParameter(
                f"{text!r} is not a label; write KEY=VALUE, such as team=flights",
                param_hint="--label",
            )
        found[key] = value
    return found


def label(
    instance_id: InstanceId,
    change: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE…", help="Labels to set; KEY- removes one."),
    ],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Change the labels of an instance."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    removed = [text[:-1] for text in change if "=" not in text and text.endswith("-")]
    kept = [text for text in change if not ("=" not in text and text.endswith("-"))]
    changes: dict[str, str | None] = {**parse_labels(kept), **dict.fromkeys(removed)}
    with ShoalClient.connect(data) as client:
        labels = client.change_labels(instance_id, {"labels": changes})["labels"]
    if as_json:
        print_json(labels)
    else:
        told = "  ".join(f"{key}={value}" for key, value in labels.items())
        say(f"instance {instance_id}: {told or 'no labels'}")
