"""Backfills before they are stored: what they would run, and whether the caller may run it."""

from collections.abc import Collection, Iterable

from shoal.api.access.callers import Caller
from shoal.api.web.errors import FieldError, Forbidden, InvalidRequest
from shoal.core.access.permissions import Permission
from shoal.core.backfill.plan import BackfillPlan
from shoal.core.backfill.request import BackfillRefused, BackfillRequest, BackfillRunState
from shoal.core.timing.cron.expression import InvalidCron
from shoal.sql import UnitOfWork
from shoal.sql.backfill_plans import plan_of
from shoal.sql.statements.rows import leave_out


def require_all(caller: Caller, projects: Iterable[int | None]) -> None:
    """Return if the caller may operate all projects that a backfill reaches. Raises Forbidden.

    The text names none of them: some may be hidden.
    """
    if not all(caller.may(Permission.RUN_OPERATE, project) for project in projects):
        raise Forbidden(
            f"the backfill runs workflows of other projects, too; {caller.name} needs the "
            f"permission {Permission.RUN_OPERATE} in all of them"
        )


async def planned(uow: UnitOfWork, request: BackfillRequest) -> BackfillPlan:
    """Return what a backfill would run now. Raises InvalidRequest, NotFound."""
    try:
        return await plan_of(uow, request)
    except BackfillRefused as error:
        raise InvalidRequest([FieldError(error.field, str(error))]) from None
    except InvalidCron as error:
        raise InvalidRequest([FieldError("workflow", f"has a schedule: {error}")]) from None


def require_work(plan: BackfillPlan) -> None:
    """Return if there is anything to run. Raises InvalidRequest."""
    try:
        plan.require_work()
    except BackfillRefused as error:
        raise InvalidRequest([FieldError(error.field, str(error))]) from None


async def counts_of(
    uow: UnitOfWork, ids: Collection[int]
) -> dict[int, dict[BackfillRunState, int]]:
    """Return how many dates of each backfill are in each state, but those that are illegible."""
    return await uow.backfills.counts(ids, leave_out)
