"""Do the work of one look in this process; ``test_agent_looks`` has the whole way."""

import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.kind import ChildType
from shoal.worker.types.child.outcome import NOT_YET, NotYet, WorkFailed, is_settled
from shoal.worker.types.child.request import WorkRequest
from shoal.worker.types.child.work import Work
from shoal.worker.types.wait.kind import WaitFile, WaitSql

TAG = "shoal-0123456789abcdef01234567"


@dataclass(frozen=True)
class Looked:
    """What a look has come to."""

    code: int
    reason: str
    again_s: float | None
    outputs: Mapping[str, Any]
    settled: bool


class Quiet(Work[Any]):
    """Work whose log nobody reads."""

    def log(self, text: str) -> None:
        pass


def look(
    folder: Path,
    params: Mapping[str, Any],
    *,
    kind: type[ChildType[Any]] = WaitFile,
    source: DataSource | None = None,
    settings: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    parameters: Mapping[str, str] | None = None,
    looks: int = 0,
) -> Looked:
    """Look once, to the end."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    given = {**params, "data_source": source.name} if source is not None else params
    request = WorkRequest(
        work=kind.work,
        task_type="",
        params={},
        parameters=parameters or {},
        task_instance_id=1,
        attempt=looks + 1,
        tag=TAG,
        looks=looks,
        data_sources={} if source is None else {source.name: source},
        settings=settings or {},
    )
    outputs = folder / "output"
    module, _, name = kind.work.partition(":")
    run = getattr(importlib.import_module(module), name)
    code, reason, again_s = 0, "", None
    with patch.dict(os.environ, {**(env or {}), "SHOAL_OUTPUT": str(outputs)}):
        work = Quiet(request, kind.Params.model_validate(given), folder)
        try:
            run(work)
        except NotYet as not_yet:
            code, reason, again_s = NOT_YET, str(not_yet), not_yet.again_s
        except WorkFailed as failed:
            code, reason = failed.exit_code, str(failed)
    given_on = json.loads(outputs.read_text()) if outputs.exists() else {}
    return Looked(code, reason, again_s, given_on, is_settled(folder))


def look_at_rows(
    folder: Path, source: DataSource, params: Mapping[str, Any], **more: Any
) -> Looked:
    """Do the same for WAIT_SQL."""
    return look(folder, params, kind=WaitSql, source=source, **more)
