"""Load what the jobs of insight have computed into the database, in a process of its own.

The owner of partition 0 looks for marks, which runs of the jobs leave beside their results. Should
two masters load at once, both do no harm: of two batches one counts.
"""

import asyncio
import time
from pathlib import Path

import structlog

from shoal.master.services.service import MasterContext, UpkeepFailed
from shoal.master.services.upkeep.history import run_insight
from shoal.master.services.upkeep.purges import HOME
from shoal.runtime.storage import LISTED_HISTORY, Storage, StorageError, cluster_folder

log = structlog.get_logger()

_PROGRAM = "shoal.insight.serving.program"  # by its name: masters import none of it
_MARKS = "rollups/finished"  # below the folder of the history


class LoadingFailed(UpkeepFailed):
    """The process that loads roll-ups has failed."""


class RollupLoading:
    """The loading of roll-ups from the history at ``url``, for one master."""

    def __init__(self, context: MasterContext, url: str, cluster_uid: str, data: Path) -> None:
        self._engine = context.engine
        self._times = context.upkeep
        self._storage = Storage(url, LISTED_HISTORY)
        self._marks = f"{cluster_folder(cluster_uid)}/{_MARKS}"
        self._due_at = time.monotonic() + self._times.first
        self._quiet_until = 0.0
        self._options = [
            *("--data", str(data), "--url", url),
            *("--share", str(context.settings.export_share)),
            *("--keep-days", str(context.settings.keep_rollups_days)),
        ]
        context.jobs.every("roll-ups", self.load, self._times.marks, self._times.marks)

    async def load(self) -> None:
        """Load what is new, if something is. Raises LoadingFailed: a later run goes on."""
        now = time.monotonic()
        if not self._engine.owns(HOME) or now < self._quiet_until:
            return
        if now < self._due_at and not await asyncio.to_thread(self._has_marks):
            return
        self._quiet_until = now + self._times.rollups_after_failure
        try:
            done = await run_insight(_PROGRAM, self._options, self._times.longest_program)
        except UpkeepFailed as error:
            raise LoadingFailed(f"roll-ups were not loaded: {error}") from None
        self._quiet_until, self._due_at = 0.0, time.monotonic() + self._times.rollups
        for why in done["refused"]:
            log.warning("roll-ups were not loaded", reason=why)
        if done["loaded"] or done["forgotten"]:
            log.info(
                "loaded roll-ups", **{name: done[name] for name in ("loaded", "rows", "forgotten")}
            )

    def _has_marks(self) -> bool:
        """Whether a run of the jobs has ended. A storage that is away is logged once an hour."""
        try:
            return bool(self._storage.names_in(self._marks))
        except StorageError as error:
            log.debug("cannot look for new roll-ups", error=str(error))
            return False
