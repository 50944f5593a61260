"""Do the work of FLINK tasks in this process."""

import asyncio
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.outcome import CANCELLED, WorkFailed, is_settled
from shoal.worker.types.child.request import WorkRequest
from shoal.worker.types.child.work import Work
from shoal.worker.types.flink.kind import Flink, FlinkParams
from shoal.worker.types.flink.run import run, settle
from tests.support.waiting import DEADLINE_S

TAG = "shoal-0123456789abcdef"


@dataclass(frozen=True)
class Done:
    """How it ended."""

    code: int
    log: str
    reason: str
    outputs: dict[str, Any]
    settled: bool


class Attempt(Work[FlinkParams]):
    """One attempt of a task whose log is kept."""

    def __init__(
        self, folder: Path, source: DataSource, *, attempt: int = 1, **params: Any
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        jar = folder / "job.jar"
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("Job.class", b"")
        given = {"data_source": source.name, "jar": str(jar), "main_class": "Job", **params}
        request = WorkRequest(
            work=Flink.work,
            task_type="",
            params=given,
            parameters={},
            task_instance_id=1,
            attempt=attempt,
            tag=TAG,
            data_sources={source.name: source},
        )
        super().__init__(request, FlinkParams.model_validate(given), folder)
        self._outputs = str(folder / "output")
        self.lines: list[str] = []

    def log(self, text: str) -> None:
        self.lines += text.splitlines()

    async def ran(self, *, settling: bool = False) -> Done:
        """Do the work to its end; a cancellation of this task is a kill."""
        code, reason = 0, ""
        async with asyncio.timeout(DEADLINE_S):
            try:
                await (settle if settling else run)(self)
            except WorkFailed as failed:
                code, reason = failed.exit_code, str(failed)
            except asyncio.CancelledError:
                code = CANCELLED
        return self._done(code, reason)

    def _done(self, code: int, reason: str) -> Done:
        file = Path(self._outputs)
        outputs = json.loads(file.read_text()) if file.exists() else {}
        return Done(code, "\n".join(self.lines), reason, outputs, is_settled(self.folder))
