"""``shoal status``: who is there and what waits."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from shoal.client.cli.options import Data, Json

if TYPE_CHECKING:
    from shoal.client.find import Api
    from shoal.client.rest_types import ClusterJson, HealthJson


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command(rich_help_panel="Cluster")(status)


def status(data: Data = None, as_json: Json = False) -> None:
    """Show the cluster: masters, workers, partitions, queues."""
    from shoal.client.cli.output import print_json
    from shoal.client.find import find_api
    from shoal.client.rest import ShoalClient

    api = find_api(data)
    with ShoalClient.of(api) as client:
        health = client.health()
        cluster = client.cluster()
    if as_json:
        print_json({"api": api.url, "health": health, **cluster})
    else:
        _show(api, health, cluster)
    if health["status"] != "ok":
        raise typer.Exit(1)


def _show(api: "Api", health: "HealthJson", cluster: "ClusterJson") -> None:
    from rich.text import Text

    from shoal.client.cli.look import lasted, state_text
    from shoal.client.cli.output import out
    from shoal.client.cli.tables import table

    console, now = out(), datetime.now(UTC)
    console.print(state_text(health["status"]), Text(f"Shoal {health['version']}", "bold"), api.url)
    checks = health["checks"]
    parts = (("database", checks["database"]), ("ZooKeeper", checks["zookeeper"]))
    for name, check in parts:
        mark = state_text("ok" if check["ok"] else "degraded").plain[0]
        style = "dim" if check["ok"] else "red"
        console.print(Text(f"{mark} {name}: {check['detail']}", style), soft_wrap=True)
    owned = sum(1 for partition in cluster["partitions"] if partition["owner"])
    total = len(cluster["partitions"])
    style = "dim" if owned == total else "yellow"
    console.print(
        Text(f"{'✓' if owned == total else '!'} {owned} of {total} partitions owned", style)
    )
    console.print()
    shown = table("master", "address", "partitions>", "up>")
    for master in cluster["masters"]:
        count = str(len(master["partitions"]))
        up = lasted(master["started_at"], None, now)
        shown.add_row(master["id"], Text(master["address"], "dim"), count, up)
    console.print(shown if cluster["masters"] else Text("no master is running", "red"))
    console.print()
    shown = table("worker", "address", "group", "running>", "slots>", "up>")
    for worker in cluster["workers"]:
        up = lasted(worker["started_at"], None, now)
        shown.add_row(
            worker["id"],
            Text(worker["address"], "dim"),
            worker["group"],
            str(worker["running"]),
            str(worker["slots"]),
            up,
        )
    console.print(shown if cluster["workers"] else Text("no worker is running", "red"))
    waiting = [queue for queue in cluster["queues"] if queue["depth"]]
    if waiting:
        groups = {worker["group"] for worker in cluster["workers"]}
        shown = table("queue", "waiting>", "")
        for queue in waiting:
            served = "" if queue["group"] in groups else "no worker serves this group"
            shown.add_row(queue["group"], f"{queue['depth']:,}", Text(served, "red"))
        console.print()
        console.print(shown)
