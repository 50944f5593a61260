"""Runs that are in the exported history, and in the database no more."""

import io
from datetime import UTC, datetime, timedelta

from shoal.core.decide import decide
from shoal.core.runs.events import Begun, StopRequested
from shoal.core.runs.run import Run
from shoal.insight.export.exporter import Exporter
from shoal.insight.export.extraction import Pieces
from shoal.insight.history.store import HistoryStore
from tests.integration.api.conftest import Api


async def exported(api: Api) -> HistoryStore:
    """Export what has ended, as a master does; return the history."""
    database = api.services.store.database
    async with database.unit_of_work() as uow:
        uid = await uow.cluster.uid()
        await uow.commit()
    store = HistoryStore(api.services.past.url, uid)
    most = 1 << 40  # tests leave out a great many ids
    pieces = Pieces(rows=most, instances=most, commands=most, open_commands=most)
    await Exporter(database, store, pieces=pieces).run()
    return store


async def ended(api: Api, name: str, project: str, at: datetime | None = None) -> Run:
    """Run a workflow that is published, and stop the run, as a master does."""
    at = at or datetime.now(UTC)
    run = await api.started(name, project)
    for event in (Begun(at), StopRequested(at)):
        decision = decide(run, event)
        run.apply(decision)
        async with api.services.store.unit_of_work() as uow:
            await uow.instances.save([(run, decision)], at)
            await uow.commit()
    return run


async def purged(api: Api, run: Run) -> None:
    """Delete a run that has ended, as the purge does."""
    later = datetime.now(UTC) + timedelta(days=1)
    async with api.services.store.unit_of_work() as uow:
        verified = await uow.verified_history.get()
        deleted = await uow.expired.delete_instances([run.id], later, verified)
        await uow.commit()
    assert set(deleted.partitions) == {run.id}


async def past_ids(api: Api, project: str) -> dict[str, int]:
    """Make a past run of the workflow daily, with a log in the archive if there is one."""
    run = await ended(api, "daily", project)
    await exported(api)
    await purged(api, run)
    attempt = next(one.id for one in run.attempts.values() if one.id is not None)
    if (archive := api.services.logs._archive) is not None:
        archive.put(run.id, attempt, io.BytesIO(b"hello\n"))
    return {"past_instance_id": run.id, "attempt_id": attempt}
