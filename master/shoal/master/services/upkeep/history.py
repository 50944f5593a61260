"""Export what has ended to the history, in a process of its own.

The owner of partition 0 starts it. Should two masters do it at once, one of the two exports comes
too late, and says so: the position in the database decides.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from shoal.core.errors import shortened
from shoal.core.runs.quarantine import reason_of
from shoal.core.untrusted import NotJson, read_json
from shoal.master.services.service import MasterContext, UpkeepFailed
from shoal.master.services.upkeep.purges import HOME
from shoal.runtime.programs import run_program

log = structlog.get_logger()

_PROGRAM = "shoal.insight.export.program"  # by its name: masters import none of it
_LONGEST_REASON = 2_000


class ExportFailed(UpkeepFailed):
    """The process that exports the history has failed."""


class HistoryExport:
    """The regular export to the history at ``url``, for one master."""

    def __init__(self, context: MasterContext, url: str, data: Path) -> None:
        settings = context.settings
        self._engine = context.engine
        self._database, self._clock = context.database, context.clock
        self._longest_s = context.upkeep.longest_program
        self._options = [
            *("--data", str(data), "--url", url),
            *("--share", str(settings.export_share)),
            *("--keep-days", str(settings.keep_history_days)),
        ]
        every_s = settings.export_interval_s
        first_s = min(context.upkeep.first, every_s)
        context.jobs.every("history export", self.export, every_s, first_s)

    async def export(self) -> None:
        """Export all that has ended. Raises ExportFailed: the next one goes on from there."""
        if not self._engine.owns(HOME):
            return
        try:
            done = await run_insight(_PROGRAM, self._options, self._longest_s)
        except UpkeepFailed as error:
            await self._note_trouble(str(error))
            raise ExportFailed(f"the history was not exported: {error}") from None
        if done["left_out"]:
            log.warning("rows cannot be read, the history lacks them", rows=done["left_out"])
        if done["damaged"]:
            log.error(
                "files of the exported history are damaged or missing: their rows were exported "
                "again as far as the database still has them",
                files=done["damaged"],
                lacking=done["lacking"],
            )
        log.debug("the history was exported", **done)

    async def _note_trouble(self, trouble: str) -> None:
        """Store why the export failed, for users who ask why the purge waits.

        An outage of the database fails this write too. Its error must not replace ExportFailed:
        a database error is retried within seconds, so exports would start again and again.
        """
        try:
            async with self._database.unit_of_work() as uow:
                await uow.verified_history.note_trouble(trouble, self._clock())
                await uow.commit()
        except Exception as error:  # noqa: BLE001 - the caller raises ExportFailed
            log.warning("the failure of the export could not be stored", error=reason_of(error))


async def run_insight(program: str, options: Sequence[str], longest_s: float) -> Mapping[str, Any]:
    """Run a program of ``shoal.insight`` to its end; return what it says that it has done.

    If this is cancelled the process is killed; what it has stored counts. Raises UpkeepFailed.
    """
    try:
        async with asyncio.timeout(longest_s):
            done = await run_program([sys.executable, "-m", program, *options])
    except TimeoutError:
        raise UpkeepFailed(
            f"it has not ended in {longest_s / 3600:g} h, perhaps because the storage does not "
            f"answer: {' '.join(options)}; what was stored stays, and the next one goes on"
        ) from None
    if done.code != 0:
        why = done.errors.strip() or f"exit status {done.code}"
        raise UpkeepFailed(shortened(why, _LONGEST_REASON))
    try:
        said = read_json(done.output)
    except NotJson as error:
        # What the program stored counts, so its next run has less to say.
        raise UpkeepFailed(
            f"the answer of {program} is not JSON ({shortened(str(error), 100)}): "
            f"{shortened(done.output.strip() or 'it is empty', 200)!r}; what was stored stays, and "
            "the next run continues"
        ) from None
    if not isinstance(said, dict):
        raise UpkeepFailed(
            f"the answer of {program} is not a JSON object: {shortened(done.output.strip(), 200)!r}"
        )
    return said
