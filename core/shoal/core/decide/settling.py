"""When an instance, or its pause or stop, is complete, and with which result."""

from shoal.core.decide.draft import FAILURES, Draft
from shoal.core.decide.ending import MAY_START
from shoal.core.definition.model import FailureStrategy
from shoal.core.runs.states import TaskState, WorkflowSignal, WorkflowState
from shoal.core.runs.why.codes import Code
from shoal.core.runs.why.reasons import say

_W, _T = WorkflowState, TaskState


def settle(draft: Draft) -> None:
    """End the instance, or its pause, when nothing is left to do."""
    if draft.state not in MAY_START | {_W.STOPPING} or draft.held:
        return
    if draft.open:
        if draft.state is _W.PAUSING:
            draft.move(WorkflowSignal.SETTLE)
        return
    if draft.state is _W.STOPPING and draft.count(_T.KILLED, _T.LOST):
        asked = draft.reason or draft.run.reason
        draft.move(WorkflowSignal.SETTLE, reason=asked or say(Code.REASON_STOPPED))
        return
    failed = draft.unhandled(*FAILURES)
    ignored = draft.run.plan.spec.on_failure is FailureStrategy.IGNORE
    if failed and not ignored:
        draft.move(WorkflowSignal.FAIL, reason=say(Code.REASON_TASKS_FAILED, tasks=failed))
    else:
        reason = say(Code.REASON_FAILURES_IGNORED, tasks=failed) if failed else None
        draft.move(WorkflowSignal.SUCCEED, reason=reason)
