"""``shoal status``: members, and what waits."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from rich.text import Text

    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.discovery import Api
    from shoal.client.rest.operations.generated.types import (
        Check,
        ClockDifference,
        ClusterOut,
        Health,
    )


_MOST_QUARANTINED = 10
_DAMAGED = 5  # znodes that are shown
# Findings that other lines show.
_SHOWN_ELSEWHERE = frozenset(
    {
        "health.database",
        "health.zookeeper",
        "health.partitions",
        "health.no_master",
        "health.commands",
        "health.master_database",
        "health.worker_groups",
        "health.quarantined",
        "health.skipped",
    }
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command(rich_help_panel="Cluster")(status)


def status(
    data: Data = None,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Also show who owns which partition.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the cluster: masters, workers, partitions, what there is to do."""
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.discovery import find_api
    from shoal.client.rest.client import ShoalClient

    api = find_api(data)
    with ShoalClient.of(api) as client:
        health = client.get_health()
        cluster = client.get_cluster()
    if as_json:
        print_json({"api": api.url, "health": health, **cluster})
    else:
        _show(api, health, cluster, partitions=partitions)
    if health["status"] != "ok":
        raise typer.Exit(1)


def _show(api: "Api", health: "Health", cluster: "ClusterOut", *, partitions: bool) -> None:
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import harmless, state_text
    from shoal.client.cli.terminal.output import out

    console, now = out(), datetime.now(UTC)
    head = (state_text(health["status"]), f"  Shoal {health['version']} at {api.url}")
    console.print(Text.assemble(*head), soft_wrap=True)
    for name, check in (
        ("database", health["checks"]["database"]),
        ("ZooKeeper", health["checks"]["zookeeper"]),
        *_failed_checks(health),
    ):
        console.print(_check(check["ok"], f"{name}: {check['detail']}"), soft_wrap=True)
    owned = sum(1 for partition in cluster["partitions"] if partition["owner"])
    total = len(cluster["partitions"])
    console.print(_check(owned == total, f"{owned} of {total} partitions have an owner"))
    for line in filter(None, (_group(cluster), _backlog(cluster), _alerts(cluster))):
        console.print(line, soft_wrap=True)
    for what, grid in (("master", _masters(cluster, now)), ("worker", _workers(cluster, now))):
        console.print()
        table = grid.table(console.width, ("address", "up", "newest epoch", "group"))
        console.print(table if grid.rows else Text(f"no {what} is running", "red"))
    history = cluster.get("history")
    is_behind = history is not None and bool(history["trouble"])
    shown = _SHOWN_ELSEWHERE | ({"health.export_lag"} if is_behind else set())
    for finding in health.get("findings", []):
        if finding["code"] not in shown:
            console.print(_check(False, harmless(finding["text"])), soft_wrap=True)
    for trouble in health.get("master_troubles", []):
        console.print(_check(False, trouble), soft_wrap=True)
    for master in cluster["masters"]:
        if said := master.get("given_up"):  # history: it does not make the status degraded
            console.print(Text(harmless(f"master {master['id']} {said}"), "yellow"), soft_wrap=True)
    for clock in health.get("clock_differences", []):
        console.print(Text(_off(clock), "yellow"), soft_wrap=True)
    for worker in cluster["workers"]:
        if worker["paused"]:
            console.print(_check(False, f"{worker['id']} takes no tasks: {worker['paused']}"))
        elif silent := worker.get("unreachable"):
            ids = {master["address"]: master["id"] for master in cluster["masters"]}
            names = ", ".join(f"{ids[each]} ({each})" if each in ids else each for each in silent)
            text = f"{worker['id']} cannot reach master {names}: takes none of its tasks"
            console.print(_check(False, text), soft_wrap=True)
        if why := worker.get("logs_not_archived"):
            text = harmless(f"{worker['id']} cannot copy finished logs to the archive: {why}")
            console.print(_check(False, text), soft_wrap=True)
    if history is not None and history["trouble"]:
        text = (
            f"the export of the history is behind since {history['since']}, and the purge waits "
            f"for it: {history['trouble']}"
        )
        console.print(_check(False, harmless(text)), soft_wrap=True)
    _show_quarantined(cluster)
    _show_others_quarantined(health)
    for each in (cluster.get("damaged_znodes") or [])[-_DAMAGED:]:
        told = harmless(f"found damaged and repaired: {each['path']} ({each['reason']})")
        console.print(Text(told, "yellow"), soft_wrap=True)
    waiting = _queues(cluster)
    if waiting.rows:
        console.print()
        console.print(waiting.table(console.width))
    if partitions:
        console.print()
        console.print(_partitions(cluster).table(console.width))


def _off(clock: "ClockDifference") -> str:
    from shoal.client.cli.terminal.appearance import harmless

    by_s = clock["ahead_s"]
    text = (
        f"the clock of {clock['clock']} is {abs(by_s):,.1f} s {'ahead' if by_s > 0 else 'behind'}"
    )
    return harmless(f"{text}: synchronise it (NTP); what is due goes by the cluster's time")


def _failed_checks(health: "Health") -> "list[tuple[str, Check]]":
    """Return what is wrong with partitions and commands; an earlier API says nothing of it."""
    checks = health["checks"]
    found: list[tuple[str, Check | None]] = [
        ("partitions", checks.get("partitions")),
        ("commands", checks.get("commands")),
        ("worker groups", checks.get("worker_groups")),
    ]
    return [(name, check) for name, check in found if check and not check["ok"]]


def _show_quarantined(cluster: "ClusterOut") -> None:
    """What masters cannot work with: a few lines, since one cause may concern many."""
    from shoal.client.cli.terminal.output import out

    found = cluster["set_aside"]
    for one in found[:_MOST_QUARANTINED]:
        text = f"{one['kind']} {one['item']} is quarantined: {one['reason']}"
        out().print(_check(False, text), soft_wrap=True)
    if found:
        more = len(found) - _MOST_QUARANTINED
        text = (f"… and {more} more; " if more > 0 else "") + (
            "`shoal quarantine list` shows all with their reasons; after an upgrade or a repair "
            "`shoal quarantine retry` or `shoal recover INSTANCE` tries again at once"
        )
        out().print(_check(False, text), soft_wrap=True)


def _show_others_quarantined(health: "Health") -> None:
    """What alert servers and other consumers cannot work with."""

    from shoal.client.cli.terminal.appearance import one_line
    from shoal.client.cli.terminal.output import out

    found = health.get("quarantine")
    if not found:
        return
    others = [one for one in found["newest"] if one["consumer"] != "masters"]
    for one in others[:_MOST_QUARANTINED]:
        home = f" of {one['project']}" if one["project"] else ""
        what = "was skipped" if one["is_skipped"] else "is quarantined"
        about = f"{one['consumer']}: {one['kind']} {one['item']}{home}"
        line = one_line(f"{about} {what}: {one['reason']}")
        out().print(_check(False, line), soft_wrap=True)
    if others or found["skipped"]:
        skipped = f"{found['skipped']:,} items were skipped; " if found["skipped"] else ""
        line = (
            f"{skipped}`shoal quarantine list` shows all; `shoal quarantine retry` tries one "
            "again, `shoal quarantine discard` forgets it"
        )
        out().print(_check(False, line), soft_wrap=True)


def _check(ok: bool, text: str) -> "Text":
    from rich.text import Text

    return Text(f"✓ {text}", "dim") if ok else Text(f"✗ {text}", "red")


def _group(cluster: "ClusterOut") -> "Text":
    """Whether the masters agree on an assignment of the partitions."""
    group = cluster["group"]
    leader = f", led by {group['leader']}" if group["leader"] else ""
    text = f"masters: generation {group['generation']}, {group['state']}{leader}"
    return _check(group["state"] in ("Stable", "Empty"), text)


def _alerts(cluster: "ClusterOut") -> "Text | None":
    """Whether alert servers work as defined; None: no alerts are defined."""
    servers = cluster["alert_servers"]
    if servers is None:
        return None
    count = f"{len(servers)} at work" if servers else "none is running: no notifications are sent"
    return _check(bool(servers), f"alert servers: {count}")


def _backlog(cluster: "ClusterOut") -> "Text":
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import plural

    backlog = cluster["backlog"]
    if backlog is None:
        return _check(False, "backlog unknown: the database cannot be reached")
    return Text(
        f"{plural(backlog['open_instances'], 'open instance')}; tasks: "
        f"{backlog['queued']:,} queued, {backlog['claimed']:,} claimed, "
        f"{backlog['running']:,} running; {plural(backlog['pending_commands'], 'command')} pending"
    )


def _masters(cluster: "ClusterOut", now: datetime) -> "TextTable":
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import lasted
    from shoal.client.cli.terminal.tables import TextTable

    grid = TextTable(
        ["master", "", "address", "partitions>", "newest epoch>", "open instances>", "up>"]
    )
    for master in cluster["masters"]:
        owned = [part for part in cluster["partitions"] if part["owner"] == master["id"]]
        newest = max((part["epoch"] for part in owned), default=None)
        working_on = sum(part["open_instances"] or 0 for part in owned)
        grid.add(
            master["id"],
            Text("leader" if master["leads"] else "", "dim"),
            Text(master["address"], "dim"),
            str(len(owned)),
            Text("" if newest is None else str(newest), "dim"),
            f"{working_on:,}",
            lasted(master["started_at"], None, now),
        )
    return grid


def _partitions(cluster: "ClusterOut") -> "TextTable":
    from rich.text import Text

    from shoal.client.cli.terminal.tables import TextTable

    grid = TextTable(["partition>", "owner", "epoch>", "open instances>", "pending commands>"])
    for part in cluster["partitions"]:
        grid.add(
            str(part["index"]),
            part["owner"] or Text("no owner", "red"),
            str(part["epoch"] or ""),
            _number(part["open_instances"]),
            _number(part["pending_commands"]),
        )
    return grid


def _number(count: int | None) -> str:
    """Return nothing for nothing, so that the eye finds what there is."""
    return f"{count:,}" if count else ""


def _workers(cluster: "ClusterOut", now: datetime) -> "TextTable":
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import lasted
    from shoal.client.cli.terminal.tables import TextTable

    grid = TextTable(["worker", "address", "group", "running>", "slots>", "up>"])
    for worker in cluster["workers"]:
        address = Text(worker["address"], "dim")
        busy, slots = str(worker["running"]), str(worker["slots"])
        up = lasted(worker["started_at"], None, now)
        grid.add(worker["id"], address, worker["group"], busy, slots, up)
    return grid


def _queues(cluster: "ClusterOut") -> "TextTable":
    """What waits, and whether anybody will ever take it."""
    from rich.text import Text

    from shoal.client.cli.terminal.tables import TextTable

    groups = {worker["group"] for worker in cluster["workers"]}
    grid = TextTable(["queue", "waiting>", "~"])
    for queue in cluster["queues"]:
        if queue["depth"]:
            lonely = "" if queue["group"] in groups else "no worker serves this group"
            grid.add(queue["group"], f"{queue['depth']:,}", Text(lonely, "red"))
    return grid
