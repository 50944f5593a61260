"""Results that an earlier life of the worker has stored: reported if they are any."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from shoal.proto import shoal_pb2 as pb
from shoal.worker.home.spool import Spool
from shoal.worker.logs.files import LogStore
from shoal.worker.main import report_leftovers
from shoal.worker.results.reporter import Reporter
from shoal.worker.supervisor.shim.journal import Journal


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


FIELDS = (*killed(1, "by eva", cause="KILL"), "outputs", "durable", "error_line", "usage")
IN_CONTEXT = ("worker_id", "workflow_instance_id", "task_instance_id", "partition", "workflow")
JUNK: tuple[Any, ...] = (
    None,
    [],
    {},
    "x",
    "\ud800\0",
    True,
    -1,
    10**400,
    float("inf"),
    float("nan"),
    1e308,
    {"a": [[[]]]},
    "9" * 5_000,
)


@pytest.mark.parametrize("is_journaled", [False, True])
@pytest.mark.parametrize("field", [*FIELDS, *(f"context.{name}" for name in IN_CONTEXT)])
async def test_junk_in_a_result_ends_no_worker_and_is_kept_aside(
    tmp_path: Path, field: str, is_journaled: bool
) -> None:
    spool, reports = Spool(tmp_path), Reports()
    journal, written = Journal(3), 0
    for number, value in enumerate(JUNK, start=1):
        record = killed(number, "by eva", cause="KILL")
        where = record["context"] if "." in field else record
        where[field.rpartition(".")[2]] = value
        text = json.dumps(record).encode()
        if is_journaled:
            journal.append(str(tmp_path), text)
        else:
            (tmp_path / f"{number}.json").write_bytes(text)
        written += 1
    spool.write("99", killed(99, "by ada", cause="KILL"))
    await report_leftovers(spool, LogStore(tmp_path / "logs"), cast("Reporter", reports))
    assert any(report.reason == "by ada" for _, report in reports.added)
    corrupt = list((tmp_path / "corrupt").iterdir()) if (tmp_path / "corrupt").exists() else []
    assert len(reports.added) + len(corrupt) >= written + 1 - len(_repeated(field))
    again = Reports()
    await report_leftovers(Spool(tmp_path), LogStore(tmp_path / "logs"), cast("Reporter", again))
    assert len(again.added) == len(reports.added)  # what is aside is not tried again


def _repeated(field: str) -> list[Any]:
    """In a journal, several records with the same usable id are one result."""
    return [one for one in JUNK if one in ("x",)] if field == "id" else []
