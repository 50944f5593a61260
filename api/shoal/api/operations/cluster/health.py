"""What members say of their clocks and databases, and commands that no master carries out."""

import asyncio
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.api.schemas.platform.health import Check
from shoal.api.services import Services
from shoal.coordination.cluster.membership import MemberInfo
from shoal.core.errors import ShoalError
from shoal.core.timing.cluster_time import STEP_S

_NAMES = {"own": "this API process", "database": "the database", "ensemble": "ZooKeeper"}


def member_ahead_s(shoal: Services, member: MemberInfo) -> float | None:
    """Return how far a member's clock is ahead of the cluster's time; None if it is right.

    Members say how far they are ahead of the ensemble; this process, how far that is off.
    """
    ensemble_s = shoal.clock.differences.get("ensemble", 0.0)
    ahead_s = (member.clock_ahead_s or 0.0) + ensemble_s
    return round(ahead_s, 1) if abs(ahead_s) > STEP_S else None


def differences(shoal: Services) -> Mapping[str, float]:
    """Return all clocks that are off: whose it is, in words -> seconds ahead of the cluster's."""
    found = {
        _NAMES.get(name, name): round(by_s, 1) for name, by_s in shoal.clock.differences.items()
    }
    for kind, members in (("master", shoal.masters), ("worker", shoal.workers)):
        for member_id, member in sorted(members.current().items()):
            ahead_s = member_ahead_s(shoal, member)
            if ahead_s is not None:
                found[f"{kind} {member_id}"] = ahead_s
    return found


def database_trouble(masters: Mapping[str, MemberInfo], master_id: str) -> str | None:
    """Return what is wrong between a master and the database; None if it is answered.

    Members' data can be anything, and an older version has nothing of this.
    """
    said = _said(masters[master_id])
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
    return f"{text}; its partitions were given to {', '.join(others) or 'nobody'}"


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
NAMED = 10  # partitions


async def overdue(shoal: Services) -> Check:
    """Return whether commands have been pending for more than ``pending_limit_s``."""
    limit_s = shoal.settings.pending_limit_s
    now = shoal.clock()
    try:
        async with asyncio.timeout(ANSWER_S):
            full = await _full_partitions(shoal)
            async with shoal.database.unit_of_work(read_only=True) as uow:
                found = await uow.commands.overdue(now - timedelta(seconds=limit_s), full, MOST)
    except (ShoalError, TimeoutError):
        return Check(ok=True, detail="not known: the checks above say why")
    if not found:
        return Check(ok=True, detail=f"none has been pending for more than {limit_s:g} s")
    count = f"{len(found):,}" if len(found) < MOST else f"{MOST:,} or more"
    partitions = sorted({one.partition for one in found})
    named = ", ".join(map(str, partitions[:NAMED])) + (", …" if len(partitions) > NAMED else "")
    oldest = min(found, key=lambda one: one.created_at)
    age_s = (now - oldest.created_at).total_seconds()
    return Check(
        ok=False,
        detail=f"{count} {'commands have' if len(found) > 1 else 'command has'} been pending for "
        f"more than {limit_s:g} s, the oldest (command {oldest.id}) for {age_s:,.0f} s, in "
        f"{len(partitions)} of {shoal.partitions} partitions: {named}",
    )


async def _full_partitions(shoal: Services) -> Collection[int]:
    """Return the partitions whose masters hold as many instances as they may: starts wait there."""
    full = {one.id for one in shoal.masters.current().values() if one.data.get("full") is True}
    if not full:
        return ()
    owners = await shoal.owners.all_owners(shoal.partitions)
    return [number for number, owner in owners.items() if owner.owner_id in full]
