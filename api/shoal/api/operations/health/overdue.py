"""Commands that no master carries out: accepted, pending for too long, and nothing explains it."""

import asyncio
from collections.abc import Collection
from datetime import timedelta

from shoal.api.schemas.platform.health import Check
from shoal.api.services import Services
from shoal.core.errors import ShoalError

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
