"""What a backfill may ask for, and its two state machines."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from shoal.core.backfill.request import (
    BACKFILL_RUN_TRANSITIONS,
    BACKFILL_TRANSITIONS,
    ENDED_BACKFILL,
    BackfillRefused,
    BackfillRequest,
    BackfillRunSignal,
    BackfillRunState,
    BackfillSignal,
    BackfillState,
    next_backfill_state,
    next_run_state,
)
from shoal.core.definition.fields import Priority
from shoal.core.definition.selection import Selection, SelectionMode
from shoal.core.runs.states import IllegalTransition
from tests.support.cases import each
from tests.unit.core.runs.diagrams import diagram

GUIDE = Path(__file__).parents[4] / "docs" / "backfills.md"
RANGE = {"workflow": "w", "from": "2026-01-01", "to": "2026-01-31"}


def test_defaults_are_the_serial_complement() -> None:
    request = BackfillRequest.model_validate(RANGE)
    assert (request.parallel, request.order, request.stop_after) == (1, "ascending", 1)
    assert (request.reprocess, request.downstream) == ("none", "none")
    assert request.priority is Priority.LOW
    assert request.selection is None


@pytest.mark.parametrize(
    ("parallel", "on_failure", "stop_after"),
    [
        (1, None, 1),
        (4, None, None),
        (4, "stop", 1),
        (1, "continue", None),
        (4, 3, 3),
    ],
)
def test_after_how_many_failures_it_stops(
    parallel: int, on_failure: Any, stop_after: int | None
) -> None:
    request = BackfillRequest.model_validate(
        {**RANGE, "parallel": parallel, "on_failure": on_failure}
    )
    assert request.stop_after == stop_after


@pytest.mark.parametrize(
    "fields",
    [
        RANGE,
        {"workflow": "w", "dates": ["2026-01-01", "2026-01-02T06:00+01:00"], "only": "failed"},
        {
            **RANGE,
            "project": "p",
            "by": "day",
            "version": 3,
            "order": "descending",
            "parallel": 4,
            "tasks": ["a", "b"],
            "mode": "downstream",
            "parameters": {"x": "1"},
            "on_failure": 3,
            "reprocess": "all",
            "downstream": "all",
            "priority": "HIGH",
        },
    ],
)
def test_what_is_stored_is_read_again(fields: dict[str, Any]) -> None:
    request = BackfillRequest.model_validate(fields)
    assert BackfillRequest.read(request.stored()) == request
    assert request.stored().items() >= {**fields}.items()


def test_what_another_version_has_stored_is_refused_in_words() -> None:
    with pytest.raises(BackfillRefused, match=r"another version .*speed.*upgrade it"):
        BackfillRequest.read({**RANGE, "speed": 3})


def test_days_and_times_may_come_as_values() -> None:
    request = BackfillRequest.model_validate(
        {"workflow": "w", "from": date(2026, 1, 1), "to": datetime(2026, 1, 2, tzinfo=UTC)}
    )
    assert (request.first, request.last) == ("2026-01-01", "2026-01-02T00:00:00+00:00")


def test_scalars_are_taken_as_text() -> None:
    request = BackfillRequest.model_validate({**RANGE, "parameters": {"n": 3, "on": True}})
    assert request.parameters == {"n": "3", "on": "true"}


def test_chosen_tasks_are_a_selection() -> None:
    request = BackfillRequest.model_validate({**RANGE, "tasks": ["a"], "mode": "upstream"})
    assert request.selection == Selection(("a",), SelectionMode.UPSTREAM)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"workflow": "w"}, "from and to, or dates"),
        ({"workflow": "w", "from": "2026-01-01"}, "from and to, or dates"),
        ({**RANGE, "dates": ["2026-01-01"]}, "do not go with"),
        ({"workflow": "w", "dates": ["2026-01-01"], "by": "day"}, "do not go with"),
        ({**RANGE, "from": "1 January"}, "is not a date"),
        ({**RANGE, "only": "missing", "reprocess": "all"}, "do not go together"),
        ({**RANGE, "mode": "upstream"}, "needs the tasks"),
        ({**RANGE, "parallel": 0}, "greater than or equal to 1"),
        ({**RANGE, "on_failure": 0}, "greater than or equal to 1"),
        ({**RANGE, "on_failure": "sometimes"}, "continue"),
        ({**RANGE, "paralel": 2}, "not permitted"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        BackfillRequest.model_validate(fields)


@each(state=BackfillState, signal=BackfillSignal)
def test_every_pair_of_a_backfill_follows_the_table_or_is_refused(
    state: BackfillState, signal: BackfillSignal
) -> None:
    if (state, signal) in BACKFILL_TRANSITIONS:
        assert next_backfill_state(state, signal) is BACKFILL_TRANSITIONS[state, signal]
    else:
        with pytest.raises(IllegalTransition, match=f"{state} does not allow {signal}"):
            next_backfill_state(state, signal)


@each(state=BackfillRunState, signal=BackfillRunSignal)
def test_every_pair_of_a_date_follows_the_table_or_is_refused(
    state: BackfillRunState, signal: BackfillRunSignal
) -> None:
    if (state, signal) in BACKFILL_RUN_TRANSITIONS:
        assert next_run_state(state, signal) is BACKFILL_RUN_TRANSITIONS[state, signal]
    else:
        with pytest.raises(IllegalTransition, match=f"{state} does not allow {signal}"):
            next_run_state(state, signal)


def test_an_ended_backfill_goes_on_by_a_retry_alone() -> None:
    leaving = {(s, signal) for s, signal in BACKFILL_TRANSITIONS if s in ENDED_BACKFILL}
    assert leaving == {
        (BackfillState.FAILED, BackfillSignal.RETRY),
        (BackfillState.CANCELLED, BackfillSignal.RETRY),
    }
    assert not any(s is BackfillRunState.SUCCEEDED for s, _ in BACKFILL_RUN_TRANSITIONS)
    assert not any(s is BackfillRunState.SKIPPED for s, _ in BACKFILL_RUN_TRANSITIONS)


@pytest.mark.parametrize(
    ("table", "start"),
    [
        (BACKFILL_TRANSITIONS, BackfillState.RUNNING),
        (BACKFILL_RUN_TRANSITIONS, BackfillRunState.WAITING),
    ],
)
def test_the_guide_shows_the_tables(table: Mapping[tuple[Any, Any], Any], start: Any) -> None:
    assert diagram(table, start) in GUIDE.read_text()
