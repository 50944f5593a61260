"""``shoal insight export``, ``load`` and ``status``, on a machine of the cluster.

They work with the database and the storage of the settings, like a role.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from shoal.runtime.settings import ClusterSettings


def export(
    share: Annotated[
        float,
        typer.Option(
            min=0.01, max=1, help="Of the time, so much may have the database at work: 0.01 to 1."
        ),
    ] = 1.0,
    anew: Annotated[
        bool,
        typer.Option("--anew", help="history_url is a new, empty place, and is meant to be."),
    ] = False,
    forget_damaged: Annotated[
        bool,
        typer.Option(
            "--forget-damaged", help="Give up files that are damaged or missing, and their rows."
        ),
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Export what has ended now; masters do so every 15 minutes by themselves."""
    import asyncio
    from dataclasses import asdict

    from shoal.client.cli.terminal.output import print_json, say
    from shoal.insight.export.program import export as export_history

    cluster = cluster_with_history(data)
    done = asyncio.run(
        export_history(
            cluster,
            cluster.history_url,
            share,
            keep_days=0,
            anew=anew,
            forget_damaged=forget_damaged,
        )
    )
    if as_json:
        print_json(asdict(done) | {"settled_until": _iso(done.settled_until)})
        return
    rows = ", ".join(f"{count:,} {table}" for table, count in sorted(done.rows.items()))
    say(f"exported {rows or 'nothing: all that has ended is in the history'}")
    for table, count in sorted(done.left_out.items()):
        say(f"{count} rows of {table} cannot be read, and the history lacks them", "warning")
    for file in done.damaged:
        say(f"damaged or missing, exported again as far as possible: {file}", "warning")
    for file in done.lacking:
        say(
            f"the history lacks {file}: restore it from a copy, or give it up: --forget-damaged",
            "warning",
        )


def load(
    all_results: Annotated[
        bool,
        typer.Option("--all", help="Compare every result with the database, not only new ones."),
    ] = False,
    share: Annotated[
        float,
        typer.Option(
            min=0.01, max=1, help="Of the time, so much may have the database at work: 0.01 to 1."
        ),
    ] = 1.0,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Load new results of the jobs into the database; masters do so by themselves."""
    import asyncio
    from dataclasses import asdict

    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.local.roles import load_master
    from shoal.insight.serving.program import load as load_results

    cluster = cluster_with_history(data)
    keep_days = load_master(cluster).keep_rollups_days
    done = asyncio.run(
        load_results(
            cluster, cluster.history_url, share=share, keep_days=keep_days, is_all=all_results
        )
    )
    if as_json:
        print_json(asdict(done))
    else:
        counts = f"{done.loaded:,} results with {done.rows:,} rows"
        say(f"loaded {counts if done.loaded else 'nothing: all results are in the database'}")
        for why in done.refused:
            say(why, "warning")
    if done.refused:
        raise typer.Exit(1)


def status(data: Data = None, as_json: Json = False) -> None:
    """Show what the history has: files, rows and bytes of each table, and up to when."""
    import asyncio

    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.insight.export.program import exports_of, history_of
    from shoal.insight.history.tables import TABLES
    from shoal.insight.past.client import PastLost

    cluster = cluster_with_history(data)
    store = asyncio.run(history_of(cluster, cluster.history_url))
    found = store.contents()
    if not found.sequence and (known := asyncio.run(exports_of(cluster))) > 1:
        raise PastLost(store.root, known)
    tables = {}
    for table in TABLES:
        files = found.of(table.name)
        tables[table.name] = {
            "files": len(files),
            "rows": sum(file.rows for file in files),
            "bytes": sum(file.size for file in files),
            "first_day": files[0].day.isoformat() if files else None,
            "last_day": files[-1].day.isoformat() if files else None,
        }
    if as_json:
        settled = _iso(found.settled_until)
        print_json({"url": store.root, "settled_until": settled, "tables": tables})
        return
    shown = TextTable(["table", "files>", "rows>", "bytes>", "first day", "last day"])
    for name, one in tables.items():
        first, last = str(one["first_day"] or ""), str(one["last_day"] or "")
        shown.add(name, f"{one['files']:,}", f"{one['rows']:,}", f"{one['bytes']:,}", first, last)
    out().print(shown.table(out().width))
    until = _iso(found.settled_until)
    say(f"{store.root} has all that had ended at {until}" if until else "nothing was exported yet")


def cluster_with_history(data: Data) -> "ClusterSettings":
    """Return the settings. Raises ShoalError if they name no history."""
    from shoal.client.discovery import data_folder
    from shoal.client.local.roles import load_cluster
    from shoal.core.errors import ShoalError

    cluster = load_cluster(data_folder(data))
    if not cluster.history_url:
        raise ShoalError(
            "no history is exported: set history_url in section [cluster] of the settings to a "
            "folder that all machines share, or to an URL such as s3://bucket/history"
        )
    return cluster


def _iso(at: object) -> str | None:
    from datetime import datetime

    return at.isoformat(timespec="seconds") if isinstance(at, datetime) else None
