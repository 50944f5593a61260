"""The worker's gRPC service for progress: how far running attempts are, as their work says."""

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc.aio

from shoal.core.errors import shortened
from shoal.core.task_types import PROGRESS_FILE
from shoal.core.untrusted import read_json
from shoal.proto import shoal_pb2 as pb
from shoal.proto.shoal_pb2_grpc import ProgressServiceServicer
from shoal.worker.attempts.held import HeldAttempts

MOST = 1_000  # attempts in one request
LONGEST_FILE = 4096  # bytes
LONGEST_TEXT = 100  # characters of a unit or a label
LATEST = 2.0**33  # an instant that every reader can show


class ProgressService(ProgressServiceServicer):
    """Reads what the attempts have written last. Nothing is kept here."""

    def __init__(self, attempts: HeldAttempts) -> None:
        self._attempts = attempts

    async def Read(  # noqa: N802 - the name is the contract's
        self,
        request: pb.ProgressRequest,
        context: grpc.aio.ServicerContext[pb.ProgressRequest, pb.ProgressResponse],
    ) -> pb.ProgressResponse:
        """Return the progress of those that run here and have said something."""
        found = (self._attempts.get(number) for number in request.task_instance_ids[:MOST])
        running = [a for a in found if a is not None and a.launch.work_dir and not a.over.is_set()]
        folders = [
            (attempt.id, attempt.launch.work_dir) for attempt in running if attempt.launch.work_dir
        ]
        return pb.ProgressResponse(tasks=await asyncio.to_thread(_read_all, folders))


def _read_all(folders: Sequence[tuple[int, Path]]) -> list[pb.TaskProgress]:
    found = (_read(number, folder) for number, folder in folders)
    return [progress for progress in found if progress is not None]


def _read(task_instance_id: int, folder: Path) -> pb.TaskProgress | None:
    """Return what an attempt says; None if that is nothing, or cannot be understood."""
    try:
        with (folder / PROGRESS_FILE).open("rb") as file:
            said = read_json(file.read(LONGEST_FILE))
        total = said.get("total")
        progress = pb.TaskProgress(
            task_instance_id=task_instance_id,
            done=_number(said["done"]),
            unit=_text(said.get("unit")),
            label=_text(said.get("label")),
            at=min(max(0.0, _number(said["at"])), LATEST),
        )
        if total is not None:
            progress.total = _number(total)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    return progress


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("no number")
    return number


def _text(value: Any) -> str:
    return shortened(value, LONGEST_TEXT) if isinstance(value, str) else ""
