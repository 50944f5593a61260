"""The transition tables: every pair, and the page that is made from them."""

import os
from pathlib import Path
from typing import Any

import pytest

from shoal.core.decide.child_states import (
    CHILD_TRANSITIONS,
    CONTINUATION_TRANSITIONS,
    ChildState,
    Continuation,
)
from shoal.core.runs.states import (
    FINISHED_TASK,
    FINISHED_WORKFLOW,
    TASK_TRANSITIONS,
    WORKFLOW_TRANSITIONS,
    IllegalTransition,
    TaskSignal,
    TaskState,
    WorkflowSignal,
    WorkflowState,
    next_task_state,
    next_workflow_state,
)
from shoal.worker.attempts.lifecycle import TRANSITIONS as ATTEMPT_TRANSITIONS
from shoal.worker.attempts.lifecycle import AttemptState
from tests.support.cases import each
from tests.unit.core.runs.diagrams import diagram

PAGE = Path(__file__).parents[4] / "docs" / "states.md"


def page() -> str:
    """The whole of docs/states.md."""
    return "\n".join(
        [
            "# States",
            "",
            "Made from the tables in `core/shoal/core/runs/states.py`,",
            "`core/shoal/core/decide/child_states.py` (children) and",
            "`worker/shoal/worker/attempts/lifecycle.py`; do not edit. After changes run",
            "`SHOAL_UPDATE_DOCS=1 .venv/bin/pytest tests/unit/core/runs/test_states.py`.",
            "",
            "## Workflow instance",
            "",
            diagram(WORKFLOW_TRANSITIONS, WorkflowState.QUEUED),
            "",
            "## Task instance (one attempt)",
            "",
            "A retry, a recovery or a resubmission after a loss is a new attempt that starts at",
            "WAITING; an attempt in a final state never changes again.",
            "",
            diagram(TASK_TRANSITIONS, TaskState.WAITING),
            "",
            "## Attempt on its worker",
            "",
            "What the worker knows of an attempt between its claim and the moment in which it",
            "forgets it. Masters store the states above.",
            "",
            diagram(ATTEMPT_TRANSITIONS, AttemptState.CLAIMED),
            "",
            "## Child of a SUB_WORKFLOW or MAP task",
            "",
            "What a task knows of an instance that works for it: its last report or, until it",
            "answers, what the last request leads to. `ASK_…` is a request to the child, `IS_…` a",
            "report of the child, `MISS` the answer to a request to continue that did not fit.",
            "",
            diagram(CHILD_TRANSITIONS, ChildState.STARTING),
            "",
            "Whether the child is to be continued as soon as there is room:",
            "",
            diagram(CONTINUATION_TRANSITIONS, Continuation.NONE),
            "",
        ]
    )


@each(state=TaskState, signal=TaskSignal)
def test_every_task_pair_follows_the_table_or_is_refused(
    state: TaskState, signal: TaskSignal
) -> None:
    if (state, signal) in TASK_TRANSITIONS:
        assert next_task_state(state, signal) is TASK_TRANSITIONS[state, signal]
    else:
        with pytest.raises(IllegalTransition, match=f"{state} does not allow {signal}"):
            next_task_state(state, signal)


@each(state=WorkflowState, signal=WorkflowSignal)
def test_every_workflow_pair_follows_the_table_or_is_refused(
    state: WorkflowState, signal: WorkflowSignal
) -> None:
    if (state, signal) in WORKFLOW_TRANSITIONS:
        assert next_workflow_state(state, signal) is WORKFLOW_TRANSITIONS[state, signal]
    else:
        with pytest.raises(IllegalTransition, match=f"{state} does not allow {signal}"):
            next_workflow_state(state, signal)


def test_final_task_states_have_no_way_out() -> None:
    assert not {state for state, _ in TASK_TRANSITIONS} & FINISHED_TASK
    assert set(TaskState) - {state for state, _ in TASK_TRANSITIONS} == FINISHED_TASK


def test_the_ends_of_an_instance_allow_only_another_start() -> None:
    outs = {
        (state, after)
        for (state, _), after in WORKFLOW_TRANSITIONS.items()
        if state in FINISHED_WORKFLOW
    }
    assert outs == {
        (WorkflowState.STOPPED, WorkflowState.RUNNING),
        (WorkflowState.FAILED, WorkflowState.RUNNING),
        (WorkflowState.SUCCEEDED, WorkflowState.RUNNING),
    }


def test_every_state_can_be_reached_and_left_towards_an_end() -> None:
    for table, start, ends in (
        (TASK_TRANSITIONS, TaskState.WAITING, FINISHED_TASK),
        (WORKFLOW_TRANSITIONS, WorkflowState.QUEUED, FINISHED_WORKFLOW),
        (ATTEMPT_TRANSITIONS, AttemptState.CLAIMED, {AttemptState.FORGOTTEN}),
    ):
        reached = _closure({start}, {(s, a) for (s, _), a in table.items()})
        assert reached == set(type(start))
        leading = _closure(set(ends), {(a, s) for (s, _), a in table.items()})
        assert leading == set(type(start))


def _closure(found: set[Any], edges: set[tuple[Any, Any]]) -> set[Any]:
    while True:
        more = {after for before, after in edges if before in found} - found
        if not more:
            return found
        found = found | more


def test_page_is_up_to_date() -> None:
    if os.environ.get("SHOAL_UPDATE_DOCS"):
        PAGE.write_text(page())
    assert PAGE.read_text() == page()
