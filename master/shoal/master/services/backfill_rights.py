"""May who has asked for a backfill run all that it reaches, now that a master carries it out?

The API has judged that before it stored the request. But a master may come to it much later, and
plans anew: definitions of other projects, and rights, may have changed meanwhile.
"""

from collections.abc import Collection

from shoal.core.access.authorization import AccessVerdict, Thing, judge
from shoal.core.access.permissions import Permission
from shoal.core.backfill.plan import BackfillPlan
from shoal.core.backfill.request import BackfillRefused
from shoal.core.runs.commands import Command
from shoal.sql import UnitOfWork


async def require_plan(
    uow: UnitOfWork, command: Command, plan: BackfillPlan, judged: Collection[int]
) -> None:
    """Return if all that is planned may be run. Raises BackfillRefused.

    ``judged``: the ids of the projects that the API has found to be within the limits of the token.
    Who has no account asks with the token of the data folder, or is Shoal.
    """
    if command.caller_id is None:
        return
    names = {run.project for run in plan.runs}
    homes = {await uow.homes.of(Thing.PROJECT, name) for name in names}
    if not homes <= {*judged}:
        raise _refusal()
    await require_rights(uow, command, {one for one in homes if one is not None})


async def require_rights(uow: UnitOfWork, command: Command, projects: Collection[int]) -> None:
    """Return if who has asked may operate these projects now. Raises BackfillRefused."""
    if command.caller_id is None:
        return
    caller = await uow.rights.of_principal(command.caller_id)
    if caller is None or any(
        judge(caller, Permission.RUN_OPERATE, one) is not AccessVerdict.ALLOWED for one in projects
    ):
        raise _refusal()


def _refusal() -> BackfillRefused:
    """The text names no project: some may be hidden from who reads it."""
    return BackfillRefused(
        "downstream",
        "the user who requested it may not, or no longer, run the workflows of all projects that "
        "the backfill reaches now: that needs the permission "
        f"{Permission.RUN_OPERATE} in each; ask "
        "again to see what it reaches",
    )
