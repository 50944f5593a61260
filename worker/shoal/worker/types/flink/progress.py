"""A job that runs, followed to its end or to where its tasks run."""

import asyncio
import json
import time
from contextlib import suppress
from typing import Any

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.flink.cluster import TERMINAL, FlinkClient, Refused, Unreachable
from shoal.worker.types.flink.failures import cause
from shoal.worker.types.flink.kind import FlinkParams

LOOK_S = 0.5  # between two looks at a job
#: How long a cluster may be out of reach, or know nothing of the job, while its job manager is
#: started anew or another one takes over.
PATIENCE_S = 60.0
MOST_ACCUMULATORS = 256 * 1024  # bytes of JSON
_LONGEST_TRACE = 100  # lines in the log
_NUMBERS = {"IntCounter": int, "LongCounter": int, "DoubleCounter": float}


class Following:
    """Stays with a job. ``is_over`` says whether Flink has confirmed its end."""

    def __init__(self, work: Work[FlinkParams], cluster: FlinkClient, job: str) -> None:
        self._work, self._cluster, self._job = work, cluster, job
        self._status = ""
        self._silent_since: float | None = None
        self.is_over = False

    async def follow(self) -> None:
        """Return when the task has succeeded, its outputs set. Raises WorkFailed."""
        while True:
            status = await self._look()
            if status == "RUNNING" and await self._runs() and self._work.params.wait == "running":
                self._work.output(job_id=self._job)
                return
            if status in TERMINAL:
                self.is_over = True
                with suppress(Unreachable, Refused):
                    await self._cluster.until_told(self._job, status)
                await self._end(status)
                return
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> str:
        """Return the job's state; an empty text while it is unknown. Raises WorkFailed."""
        try:
            status = await self._cluster.status(self._job)
            why = f"{self._cluster.where}: it no longer knows the job"
        except (Unreachable, Refused) as error:
            if error.permanent:
                raise
            status, why = None, str(error)
        if status is None:
            self._require_patience(why)
            return ""
        self._silent_since = None
        if status != self._status:
            self._status = status
            self._work.log(f"shoal: {status}")
            if status in ("RESTARTING", "FAILING"):
                await self._log_trace()
        return status

    def _require_patience(self, why: str) -> None:
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
            self._work.log(f"shoal: {why}; asking again for {PATIENCE_S:g} s")
        if now - self._silent_since > PATIENCE_S:
            raise WorkFailed(f"{why}, for {PATIENCE_S:g} s")

    async def _runs(self) -> bool:
        """Tell how far the job is; return whether all its tasks run, or have finished."""
        try:
            details = await self._cluster.details(self._job)
        except (Unreachable, Refused):  # of no consequence: the next look will tell
            return False
        vertices = details.get("vertices") or []
        counts: dict[str, int] = {}
        for vertex in vertices:
            for state, count in (vertex.get("tasks") or {}).items():
                counts[state] = counts.get(state, 0) + int(count)
        total = sum(counts.values())
        running, finished = counts.get("RUNNING", 0), counts.get("FINISHED", 0)
        if not total:
            return False
        if running + finished == total and not finished:
            self._work.progress(running, total, "tasks", "running")
        else:
            self._work.progress(finished, total, "tasks", _running(vertices))
        return running + finished == total

    # -- the end ---------------------------------------------------------------------------------

    async def _end(self, status: str) -> None:
        if status == "CANCELED":
            text = f"{self._cluster.where}: the job was cancelled in Flink"
            raise WorkFailed(text, permanent=True)
        if status == "FAILED":
            trace = await self._log_trace()
            said = cause(trace) if trace else "it does not say why"
            raise WorkFailed(f"the Flink job failed: {said}")
        outputs = {"job_id": self._job, "accumulators": await self._accumulators()}
        if savepoint := await self._savepoint():
            outputs["savepoint"] = savepoint
        self._work.output(**outputs)

    async def _log_trace(self) -> str:
        try:
            trace = await self._cluster.trace(self._job)
        except (Unreachable, Refused) as error:
            self._work.log(f"shoal: Flink's exceptions cannot be read: {error}")
            return ""
        for line in trace.splitlines()[:_LONGEST_TRACE]:
            self._work.log(line)
        return trace

    async def _savepoint(self) -> str:
        """Return where the stop of another caller has put a savepoint; empty if there is none."""
        try:
            return await self._cluster.last_savepoint(self._job)
        except (Unreachable, Refused):
            return ""

    async def _accumulators(self) -> dict[str, Any]:
        try:
            found = await self._cluster.accumulators(self._job)
        except (Unreachable, Refused) as error:
            self._work.log(f"shoal: the job's accumulators cannot be read: {error}")
            return {}
        values = {str(one.get("name")): _value(one) for one in found}
        if len(json.dumps(values)) > MOST_ACCUMULATORS:
            self._work.log("shoal: the job's accumulators are too large for an output")
            return {}
        return values


def _running(vertices: list[dict[str, Any]]) -> str:
    """Return the name of what runs, for people."""
    return next((str(one.get("name")) for one in vertices if one.get("status") == "RUNNING"), "")


def _value(accumulator: dict[str, Any]) -> Any:
    text = str(accumulator.get("value"))
    try:
        return _NUMBERS.get(str(accumulator.get("type")), str)(text)
    except ValueError:
        return text
