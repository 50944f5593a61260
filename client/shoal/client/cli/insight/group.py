"""``shoal insight``: the group that the commands of the other modules are in."""

import typer

from shoal.client.cli.insight import exporting, reporting, setup, slowness

group = typer.Typer(
    name="insight",
    no_args_is_help=True,
    help="The history of all runs, exported as Parquet files, and what it tells.",
)
_COMMANDS = (
    setup.setup,
    reporting.report,
    slowness.why_slow,
    exporting.export,
    exporting.load,
    exporting.status,
)
for _command in _COMMANDS:
    group.command()(_command)


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.add_typer(group, rich_help_panel="Cluster")
