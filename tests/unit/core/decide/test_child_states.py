"""The tables of child instances: every pair, and what is stored of a child after it."""

from datetime import UTC, datetime
from itertools import product

import pytest

from shoal.core.decide.child_states import (
    AT_REST,
    CHILD_TRANSITIONS,
    CONTINUATION_TRANSITIONS,
    CONTINUED_BY,
    ENDED,
    MOVING,
    REPORTS,
    REQUESTS,
    ChildEvent,
    ChildState,
    Continuation,
    allows,
    next_child_state,
)
from shoal.core.decide.children import Child, ChildRuns
from shoal.core.runs.commands import CommandType
from shoal.core.runs.events import ChildChanged
from shoal.core.runs.run import Attempt
from shoal.core.runs.states import IllegalTransition, TaskState, WorkflowState
from tests.support.cases import each

NOW = datetime(2026, 1, 1, tzinfo=UTC)
S, E = ChildState, ChildEvent


def children(child: Child) -> ChildRuns:
    detail = {"items": [None], "children": {"0": child}}
    return ChildRuns(Attempt("s", 1, TaskState.RUNNING, detail=detail))


def report(state: WorkflowState | None, **fields: object) -> ChildChanged:
    return ChildChanged(1, 0, NOW, 12, state, **fields)  # type: ignore[arg-type]


@each(state=ChildState, event=ChildEvent)
def test_every_pair_follows_the_table_or_is_refused(state: ChildState, event: ChildEvent) -> None:
    assert allows(state, event) == ((state, event) in CHILD_TRANSITIONS)
    if allows(state, event):
        assert next_child_state(state, event) is CHILD_TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalTransition, match=f"{state} does not allow {event}"):
            next_child_state(state, event)


def test_every_event_says_whether_the_child_is_to_be_continued() -> None:
    assert CONTINUATION_TRANSITIONS.keys() == set(product(Continuation, ChildEvent))


def test_every_state_moves_rests_or_has_ended() -> None:
    assert set(ChildState) == MOVING | AT_REST | ENDED
    assert not MOVING & AT_REST
    assert CONTINUED_BY.keys() > AT_REST


def test_reports_are_of_all_states_of_a_workflow() -> None:
    assert REPORTS.keys() == {None, *WorkflowState}
    for state, event in REPORTS.items():
        after = {CHILD_TRANSITIONS[before, event] for before in ChildState}
        assert after == {S.REFUSED if state is None else ChildState(state)}


@each(state=ChildState, request_=REQUESTS, again=(False, True))
def test_request_is_stored_until_it_is_answered(
    state: ChildState, request_: CommandType, again: bool
) -> None:
    child: Child = {"state": str(state), "instance": 12, "asks": 3}
    if again:
        child["again"] = True
    found = children(child)
    if not allows(state, REQUESTS[request_]):
        with pytest.raises(IllegalTransition):
            found.ask(0, request_)
        return
    assert found.ask(0, request_) == (4, 12)
    after = CHILD_TRANSITIONS[state, REQUESTS[request_]]
    assert found.of(0) == {"state": after, "instance": 12, "asks": 4, "asked": request_}


@each(
    state=ChildState,
    told=REPORTS,
    asked=[None, *REQUESTS],
    refused=(False, True),
    again=(False, True),
)
def test_report_is_stored_and_keeps_what_is_to_be_continued(
    state: ChildState,
    told: WorkflowState | None,
    asked: CommandType | None,
    refused: bool,
    again: bool,
) -> None:
    child: Child = {"state": str(state), "asks": 2}
    if asked is not None:
        child["asked"] = asked
    if again:
        child["again"] = True
    found = children(child)
    assert found.take(0, report(told, reason="why", outputs={"a": "1"}, refused=refused, ask=2))
    expected: Child = {
        "state": "REFUSED" if told is None else str(told),
        "instance": 12,
        "asks": 2,
        "reason": "why",
        "outputs": {"a": "1"},
    }
    fitting = {"FAILED": "RECOVER", "STOPPED": "RESUME", "PAUSED": "RESUME"}
    missed = refused and asked in ("RESUME", "RECOVER") and asked != fitting.get(expected["state"])
    if expected["state"] in (*fitting, "PAUSING", "STOPPING") and (again or missed):
        expected["again"] = True
    assert found.of(0) == expected


def test_report_from_before_the_latest_request_tells_only_the_instance() -> None:
    found = children({"state": "STOPPING", "asks": 2, "asked": "STOP"})
    assert not found.take(0, report(WorkflowState.PAUSED, ask=1))
    assert found.of(0) == {"state": "STOPPING", "asks": 2, "asked": "STOP", "instance": 12}
