"""Finds runs whose failures nobody was told of, and messages that were sent too often."""

import json
import time
from collections.abc import Iterator, Mapping

from tests.chaos.cluster.queries import Select, connected
from tests.chaos.judging.verdict import Kind, Offence

PATIENCE_S = 120.0  # a message whose channel or database was away is tried again for minutes
_LOOK_S = 0.5
_TOLD = ("FAILED", "STOPPED")  # what the rule of the workload is about

_EVENTS = """SELECT id, workflow_instance_id, data FROM event
    WHERE kind = 'instance.state' AND project = 'default' ORDER BY id"""
_ALERTS = "SELECT event_id FROM alert"
_DELIVERIES = "SELECT id, state, kind, tries FROM alert_delivery ORDER BY id"
_POSITION = "SELECT position FROM alert_job WHERE name = 'rules'"
_CLUSTER = "SELECT uid FROM cluster"


def judge(
    database_url: str, received: Mapping[str, int], patience_s: float = PATIENCE_S
) -> Iterator[Offence]:
    """Yield an offence for each end that no alert tells of, and each message gone wrong.

    ``received``: how often each message has arrived, by its key.
    """
    with connected(database_url) as select:
        deadline = time.monotonic() + patience_s
        while left := _unfinished(select):
            if time.monotonic() >= deadline:
                yield Offence(Kind.STUCK, "alerts", left)
                break
            time.sleep(_LOOK_S)
        yield from _untold(select)
        yield from _miscounted(select, received)


def _unfinished(select: Select) -> str:
    """Return what alert servers have still to do; empty: nothing."""
    events = [int(str(row["id"])) for row in select(_EVENTS)]
    [row] = select(_POSITION) or [{"position": None}]
    position = int(str(row["position"] or 0))
    if events and position < events[-1]:
        return f"events from {position} on are not read"
    unsent = [row for row in select(_DELIVERIES) if row["state"] in _UNSENT]
    return f"{len(unsent)} messages are not sent" if unsent else ""


_UNSENT = ("PENDING", "SENDING")


def _untold(select: Select) -> Iterator[Offence]:
    told = {row["event_id"] for row in select(_ALERTS)}
    count = 0
    for row in select(_EVENTS):
        data = json.loads(str(row["data"]))
        if data.get("state") not in _TOLD:
            continue
        count += 1
        if row["id"] not in told:
            text = f"nobody was told that it is {data['state']} (event {row['id']})"
            instance = int(str(row["workflow_instance_id"]))
            yield Offence(Kind.LOST, "alert", text, instance=instance)
    if count == 0:
        yield Offence(Kind.BLIND, "alerts", "no run has failed or was stopped")


def _miscounted(select: Select, received: Mapping[str, int]) -> Iterator[Offence]:
    [row] = select(_CLUSTER)
    for one in select(_DELIVERIES):
        count, tries = received.get(f"{row['uid']}-{one['id']}", 0), int(str(one["tries"]))
        what = f"message {one['id']} ({one['kind']}, {one['state']})"
        if one["state"] == "SENT" and count == 0:
            yield Offence(Kind.LOST, "message", f"{what} never arrived")
        elif one["state"] == "FAILED":
            yield Offence(Kind.LOST, "message", f"{what} was given up")
        elif count > tries:
            text = f"{what} arrived {count} times, of {tries} tries"
            yield Offence(Kind.DUPLICATE, "message", text)
