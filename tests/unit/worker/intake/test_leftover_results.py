"""Results that an earlier life of the worker has stored: reported if they are any."""

from pathlib import Path
from typing import Any, cast

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.worker.home.spool import Spool
from shoal.worker.logs.files import LogStore
from shoal.worker.main import report_leftovers
from shoal.worker.results.reporter import Reporter


class Reports:
    def __init__(self) -> None:
        self.added: list[tuple[str, pb.Report]] = []

    def add(self, worker_id: str, report: pb.Report) -> None:
        self.added.append((worker_id, report))


def killed(number: int, reason: str, **more: str) -> dict[str, Any]:
    context = {
        "worker_id": "w-1",
        "workflow_instance_id": 7,
        "task_instance_id": number,
        "partition": 0,
    }
    return {
        "id": str(number),
        "outcome": "KILLED",
        "exit_code": None,
        "signal": 9,
        "reason": reason,
        "timed_out": False,
        "started_at": 1.0,
        "finished_at": 2.0,
        "max_rss_kb": 1,
        "cpu_s": 0.1,
        "context": context,
        **more,
    }


async def test_kill_by_request_is_reported_and_an_interruption_dropped(tmp_path: Path) -> None:
    spool, reports = Spool(tmp_path), Reports()
    for record in (
        killed(1, "by eva", cause="KILL"),
        killed(2, "by eva", cause="INTERRUPT"),
    ):
        spool.write(record["id"], record)
    await report_leftovers(spool, LogStore(tmp_path / "logs"), cast("Reporter", reports))
    ((worker_id, report),) = reports.added
    assert (worker_id, report.kind, report.reason) == ("w-1", pb.KILLED, "by eva")
    assert [entry.id for entry in spool.pending()] == ["1"]  # until a master has answered


@pytest.mark.parametrize(
    ("cause", "context", "permanent"),
    [
        ("SIGNALLED", {"repeats": False}, True),
        ("TIMEOUT", {"repeats": False}, True),
        ("SIGNALLED", {}, False),
        ("EXITED", {"repeats": False}, False),  # it has said for itself what its end means
    ],
)
async def test_what_may_have_taken_effect_is_not_done_again_after_a_restart(
    tmp_path: Path, cause: str, context: dict[str, Any], permanent: bool
) -> None:
    record = killed(1, "ended by signal 9", cause=cause) | {"outcome": "FAILED"}
    record["context"] |= context
    spool, reports = Spool(tmp_path), Reports()
    spool.write("1", record)
    await report_leftovers(spool, LogStore(tmp_path / "logs"), cast("Reporter", reports))
    ((_, report),) = reports.added
    assert report.permanent is permanent
    assert ("its worker died before it knew" in report.reason) is permanent
