"""Run the work of a task in a process of its own, as the agent does."""

import json
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from shoal.core.data_sources import DataSource
from shoal.core.definition.resources import RESOURCES
from shoal.worker.processes.work_files import make_folder
from shoal.worker.types.child.kind import ChildType, argv
from shoal.worker.types.child.outcome import is_settled, read_reason
from shoal.worker.types.child.request import WorkRequest
from shoal.worker.types.sql.sql import Sql
from tests.support.waiting import DEADLINE_S

# Nobody else's, also where several test runs share a machine.
TAG = f"shoal-test-{secrets.token_hex(6)}"
_LOCKED_S = 60.0  # what an attempt waits for the one before it to be gone


@dataclass(frozen=True)
class Ended:
    """How the process ended, and what it left."""

    code: int
    log: str
    outputs: dict[str, str]
    reason: str
    settled: bool
    folder: Path


class Process:
    """One attempt. Leaving the block kills what is left of it."""

    def __init__(
        self,
        source: DataSource | None,
        params: dict[str, Any],
        folder: Path,
        *,
        parameters: dict[str, str] | None = None,
        secrets: dict[str, str] | None = None,
        settle: bool = False,
        attempt: int = 1,
        kind: type[ChildType[Any]] = Sql,
        others: Mapping[str, DataSource] | None = None,
        env: Mapping[str, str] | None = None,
        tag: str = TAG,
        files: Mapping[str, bytes] | None = None,
        settings: Mapping[str, str] | None = None,
        before: Callable[[Path], object] = lambda folder: None,
    ) -> None:
        """``files``: what the attempt has of its project's resources, by their paths."""
        if settle:
            folder.mkdir(mode=0o700, exist_ok=True)  # that of the attempt, if it had one
        else:
            make_folder(folder)
        for path, content in (files or {}).items():
            file = folder / RESOURCES / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        before(folder)
        named, own = {}, {}
        if source is not None:
            named, own = {source.name: source}, {"data_source": source.name}
        given = kind.Params.model_validate({**own, **params})
        request = WorkRequest(
            work=kind.work,
            task_type=f"{kind.__module__}:{kind.__qualname__}",
            params=given.model_dump(mode="json"),
            parameters=parameters or {},
            task_instance_id=1,
            attempt=attempt,
            tag=tag,
            secrets=secrets or {},
            data_sources={**named, **(others or {})},
            settings=settings or {},
            settle=settle,
        )
        self._folder, self._log = folder, folder / "log"
        self._outputs = folder / "output"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                argv(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={**os.environ, **(env or {}), "SHOAL_OUTPUT": str(self._outputs)},
            )
        assert self._process.stdin is not None
        self._process.stdin.write(request.to_json().encode())
        self._process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text(encoding="utf-8")

    def until(self, text: str) -> None:
        """Return when the log has that text."""
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.log:
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.log}"
            assert self._process.poll() is None, f"ended with:\n{self.log}"
            time.sleep(0.02)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def ended(self) -> Ended:
        """Return how it ended, once it has."""
        code = self._process.wait(DEADLINE_S + _LOCKED_S)
        outputs = ""
        if self._outputs.exists():
            outputs = self._outputs.read_text(encoding="utf-8")
        return Ended(
            code,
            self.log,
            json.loads(outputs or "{}"),
            read_reason(self._folder) or "",
            is_settled(self._folder),
            self._folder,
        )


def until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ran(source: DataSource | None, params: dict[str, Any], folder: Path, **more: Any) -> Ended:
    """Run an attempt to its end."""
    with Process(source, params, folder, **more) as process:
        return process.ended()


ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
