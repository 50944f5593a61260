"""``shoal alert``: the group that the commands of the other modules are in."""

import typer

from shoal.client.cli.alerts import acting, defining, looking

group = typer.Typer(
    name="alert",
    no_args_is_help=True,
    help="Alerts of a project: rules say what people are told of, receivers who is told, channels "
    "by which way.",
)


# Once, as the module is imported: the program is built again by each call from Python.
for _command in (
    looking.show,
    looking.why,
    looking.messages,
    acting.ack,
    acting.silence,
    acting.silences,
    acting.unsilence,
    defining.apply,
    defining.rules,
    defining.receivers,
    defining.channels,
    defining.kinds,
    defining.preview,
    defining.delete,
):
    group.command()(_command)
group.command("test")(acting.try_channel)


def register(app: typer.Typer) -> None:
    """Add the commands to ``app``."""
    app.command(rich_help_panel="Runs")(looking.alerts)
    app.add_typer(group, rich_help_panel="Runs")
