"""A schedule that fires every second, and the runs that it starts."""

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

from shoal.client.local.cluster import LocalCluster
from tests.acceptance.faults.masters import pid_of
from tests.acceptance.rest import Rest

SECOND = timedelta(seconds=1)


def fired(rest: Rest) -> list[datetime]:
    """The logical times of all instances of the ticker, ascending."""
    found: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        page = rest.get("/instances", workflow="ticker", limit=500, **cursor)
        found += page["items"]
        if page["next"] is None:
            return sorted(datetime.fromisoformat(one["logical_time"]) for one in found)
        cursor = {"cursor": page["next"]}


def publish(rest: Rest, **schedule: Any) -> None:
    """A schedule that fires every second; its one task is switched off, so runs cost little."""
    every_second = {"cron": "* * * * * ?", "missed": "all", **schedule}
    rest.publish("ticker", {"tick": {"enabled": False}}, schedules=[every_second])


def owner_of_schedule(cluster: LocalCluster, rest: Rest) -> int:
    """The process that fires the schedule; the API keeps its partition to itself."""
    with closing(sqlite3.connect(cluster.data / "shoal.db")) as database:
        ((partition,),) = database.execute("SELECT partition FROM schedule").fetchall()
    masters = rest.get("/cluster")["masters"]
    return next(pid_of(one) for one in masters if partition in one["partitions"])
