"""What a message says of the tasks of a run."""

from datetime import UTC, datetime

import pytest

from shoal.core.alerts.messages.composition import write
from shoal.core.alerts.messages.message import MessageFacts, RunFacts
from shoal.core.alerts.occurrences import Trigger
from shoal.core.alerts.records import Alert, AlertDelivery, AlertState, DeliveryKind
from shoal.core.alerts.rules import Language, Severity
from shoal.core.runs.records import Instance, TaskInstance
from shoal.core.runs.states import TaskState, WorkflowState

NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)
RUN = Instance(
    id=7,
    workflow_id=1,
    project="flights",
    workflow="daily",
    version=1,
    state=WorkflowState.FAILED,
    reason="1 task failed",
    partition=0,
    priority=2,
    parameters={},
    logical_time=NOW,
    timezone="UTC",
    command_id=1,
    rerun_of=None,
    run_number=1,
    schedule_id=None,
    created_at=NOW,
    started_at=NOW,
    finished_at=NOW,
)


def facts(reason: str | None, error_line: str | None) -> MessageFacts:
    task = TaskInstance(
        id=9,
        workflow_instance_id=7,
        project="flights",
        workflow="daily",
        task="load",
        type="SHELL",
        attempt=1,
        state=TaskState.FAILED,
        worker_group="default",
        worker="w1",
        reason=reason,
        exit_code=1,
        due_at=None,
        queued_at=NOW,
        started_at=NOW,
        finished_at=NOW,
        error_line=error_line,
    )
    alert = Alert(
        project="flights",
        rule="all",
        trigger=Trigger.RUN_FAILED,
        severity=Severity.CRITICAL,
        subject="run 7",
        workflow="daily",
        event_id=1,
        at=NOW,
        state=AlertState.OPEN,
        instance_id=7,
    )
    delivery = AlertDelivery(
        "flights", "all", "team", "mail", ("a@example.org",), DeliveryKind.FIRING, NOW
    )
    return MessageFacts(delivery, [alert], 1, {7: RunFacts(RUN, [task], 0)}, NOW)


@pytest.mark.parametrize(
    ("reason", "error_line", "said"),
    [
        ("timed out after 1m", "OSError: <disk>", "timed out after 1m: OSError: <disk>"),
        ("exit code 1: OSError: <disk>", "OSError: <disk>", "exit code 1: OSError: <disk>"),
        (None, "OSError: <disk>", "OSError: <disk>"),
        ("exit code 1", None, "exit code 1"),
    ],
)
def test_reason_of_a_task_has_its_error_line(
    reason: str | None, error_line: str | None, said: str
) -> None:
    message = write(facts(reason, error_line), Language.ENGLISH, "", "c")
    (line,) = (one for one in message.text.splitlines() if one.startswith("    load"))
    assert line.endswith(f"  {said}")
    escaped = said.replace("<", "&lt;").replace(">", "&gt;")
    assert f">{escaped}</td>" in message.html
