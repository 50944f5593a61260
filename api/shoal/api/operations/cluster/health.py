"""What members say of their clocks and databases, and commands that no master carries out."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.api.operations.cluster.view import ClusterView
from shoal.api.schemas.platform.health import Check
from shoal.api.web.store import Store
from shoal.coordination.cluster.membership import MemberInfo
from shoal.core.errors import ShoalError

_LONGEST_REFUSAL = 500  # characters; members' data can be anything
_NAMES = {"own": "this API process", "database": "the database", "ensemble": "ZooKeeper"}


def differences(cluster: ClusterView) -> Mapping[str, float]:
    """Return all clocks that are off: whose it is, in words -> seconds ahead of the cluster's."""
    found = {
        _NAMES.get(name, name): round(by_s, 1) for name, by_s in cluster.clock.differences.items()
    }
    for kind, members in (("master", cluster.masters), ("worker", cluster.workers)):
        for member_id, member in sorted(members.current().items()):
            ahead_s = cluster.ahead_s(member)
            if ahead_s is not None:
                found[f"{kind} {member_id}"] = ahead_s
    return found


def database_trouble(masters: Mapping[str, MemberInfo], master_id: str) -> str | None:
    """Return what is wrong between a master and the database; None if it is answered.

    Members' data can be anything, and an older version has nothing of this.
    """
    said = _said(masters[master_id])
    if isinstance(refusal := said.get("refuses"), str):
        return f"the database refuses its writes: {refusal[:_LONGEST_REFUSAL]}"
    if said.get("answers") is not False:
        return None
    text = f"the database does not answer since {_time(said.get('since'))}"
    if said.get("shares") is not False:
        return f"{text}; it keeps its partitions"
    others = sorted(
        other.id
        for other in masters.values()
        if other.id != master_id and _said(other).get("shares") is True
    )
    return f"{text}; its partitions were given to {', '.join(others) or 'no other master'}"


def troubles(masters: Mapping[str, MemberInfo]) -> list[str]:
    """Return a line for each master whose database does not answer."""
    found = ((master_id, database_trouble(masters, master_id)) for master_id in sorted(masters))
    return [f"master {master_id}: {trouble}" for master_id, trouble in found if trouble]


def given_up(master: MemberInfo) -> str | None:
    """Return how often a master has given up partitions that the database refused it."""
    said = master.data.get("given_up")
    if not isinstance(said, Mapping) or not isinstance(times := said.get("times"), int):
        return None
    return (
        f"has given partitions up because the database had another owner for them (times: {times}, "
        f"last at {_time(said.get('at'))})"
    )


def _said(master: MemberInfo) -> Mapping[str, Any]:
    said = master.data.get("database")
    return said if isinstance(said, Mapping) else {}


def _time(value: Any) -> str:
    try:
        return f"{datetime.fromisoformat(value).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (TypeError, ValueError):
        return "an unknown time"


ANSWER_S = 3.0  # for the database or ZooKeeper: these pages show what is known without it
MOST = 1_000  # commands that are counted
NAMED = 10  # partitions, or worker groups
_MOST_GROUPS = 50  # worker groups without workers whose queues are counted


def shortlist(partitions: Sequence[int]) -> str:
    """Return the first partitions as text."""
    return ", ".join(map(str, partitions[:NAMED])) + (", …" if len(partitions) > NAMED else "")


async def overdue(store: Store, cluster: ClusterView, limit_s: float) -> Check:
    """Return whether commands have been pending for more than ``limit_s``."""
    now = cluster.clock()
    try:
        async with asyncio.timeout(ANSWER_S):
            full = await _full_partitions(cluster)
            async with store.unit_of_work(read_only=True) as uow:
                found = await uow.commands.overdue(now - timedelta(seconds=limit_s), full, MOST)
    except (ShoalError, TimeoutError):
        return Check(ok=True, detail="not known: the checks above say why")
    if not found:
        return Check(ok=True, detail=f"none has been pending for more than {limit_s:g} s")
    count = f"{len(found):,}" if len(found) < MOST else f"{MOST:,} or more"
    partitions = sorted({one.partition for one in found})
    oldest = min(found, key=lambda one: one.created_at)
    age_s = (now - oldest.created_at).total_seconds()
    return Check(
        ok=False,
        detail=f"{count} {'commands have' if len(found) > 1 else 'command has'} been pending for "
        f"more than {limit_s:g} s, the oldest (command {oldest.id}) for {age_s:,.0f} s, in "
        f"{len(partitions)} of {cluster.partitions} partitions: {shortlist(partitions)}",
    )


async def _full_partitions(cluster: ClusterView) -> Collection[int]:
    """Return the partitions whose masters hold as many instances as they may: starts wait there."""
    full = {one.id for one in cluster.masters.current().values() if one.data.get("full") is True}
    if not full:
        return ()
    owners = await cluster.owners.all_owners(cluster.partitions)
    return [number for number, owner in owners.items() if owner.owner_id in full]


async def unserved(cluster: ClusterView, limit_s: float) -> Check:
    """Return whether tasks have waited for groups without workers for more than ``limit_s``.

    A worker that restarts leaves its group for a moment.
    """
    served = {member.data.get("group") for member in cluster.workers.current().values()}
    try:
        async with asyncio.timeout(ANSWER_S):
            lonely = [group for group in await cluster.queue.groups() if group not in served]
            depths = {group: await cluster.queue.depth(group) for group in lonely[:_MOST_GROUPS]}
    except (ShoalError, TimeoutError):
        return Check(ok=True, detail="not known: the checks above say why")
    waiting = {group: depth for group, depth in depths.items() if depth}
    if not waiting:
        cluster.lonely.waiting_s((), time.monotonic())
        return Check(ok=True, detail="no task waits for a worker group without workers")
    ages = cluster.lonely.waiting_s(waiting, time.monotonic())
    if not (late := {group: depth for group, depth in waiting.items() if ages[group] > limit_s}):
        return Check(
            ok=True,
            detail=f"no task has waited for a worker group without workers for {limit_s:g} s",
        )
    waiting = late
    named = ", ".join(f"{group} ({depth:,})" for group, depth in list(waiting.items())[:NAMED])
    more = ", …" if len(waiting) > NAMED else ""
    return Check(
        ok=False,
        detail=f"tasks wait for worker groups without workers: {named}{more}; start workers, for "
        f"example `shoal worker --group {next(iter(waiting))}`",
    )
