"""The program with all its commands."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from shoal.client.cli.access import (
    audit,
    grants,
    groups,
    members,
    service_accounts,
    sessions,
    signing,
    tokens,
    ui,
    users,
    whoami,
)
from shoal.client.cli.alerts import group as alerting
from shoal.client.cli.authoring import dependencies, drafts, exchange, lifecycle, versions
from shoal.client.cli.backfills import show as backfills
from shoal.client.cli.backfills import start as backfill
from shoal.client.cli.cluster import commands as cluster
from shoal.client.cli.cluster import environments, listing, purging, rotation, status
from shoal.client.cli.exits import EPILOG
from shoal.client.cli.insight import group as insight
from shoal.client.cli.runs import bulk, comparing, labels, logs, task, why
from shoal.client.cli.runs import request as requesting
from shoal.client.cli.runs import show as runs
from shoal.client.cli.runs import start as running
from shoal.client.cli.views import attempts, grid, history, simulate, timeline, today
from shoal.client.cli.workflows import apply as applying
from shoal.client.cli.workflows import (
    calendars,
    concurrency,
    data_sources,
    parameters,
    resources,
    schedules,
    secrets,
    trial,
)
from shoal.client.cli.workflows import show as workflows


@cache
def program() -> Callable[..., Any]:
    """Return the program, which is made once: the modules' own groups would grow each time."""
    return get_command(_build())


def _build() -> typer.Typer:
    """Return all commands; help lists them in this order."""
    app = typer.Typer(
        name="shoal",
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode="rich",
    )
    app.callback()(_shoal)
    for module in (
        applying,
        trial,
        workflows,
        drafts,
        versions,
        lifecycle,
        dependencies,
        exchange,
        schedules,
        calendars,
        concurrency,
        parameters,
        secrets,
        data_sources,
        resources,
        running,
        requesting,
        runs,
        labels,
        bulk,
        comparing,
        task,
        why,
        alerting,
        attempts,
        timeline,
        today,
        grid,
        history,
        simulate,
        backfill,
        backfills,
        logs,
        status,
        listing,
        environments,
        purging,
        rotation,
        insight,
        cluster,
        ui,
        signing,
        whoami,
        tokens,
        sessions,
        grants,
        members,
        service_accounts,
        users,
        groups,
        audit,
    ):
        module.register(app)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"shoal {version('shoal')}")
        raise typer.Exit


def _shoal(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Shoal schedules DAG workflows over a cluster of equal masters and workers.

    Start with `shoal up`, then `shoal apply FILE` and `shoal run NAME --wait`.
    """
