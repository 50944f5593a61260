"""Tasks with long texts: rendered beside the event loop, one at a time, and never for ever."""

import asyncio
import contextlib
import threading
import time

import pytest

from shoal.core.macros.placeholders import InvalidMacro
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import WorkflowState
from shoal.master.dispatch import payloads
from shoal.master.dispatch.side_thread import Patience, SideThread, TextsWait
from shoal.sql import Database
from tests.integration.master.dispatch.payloads import NOW, maker_of
from tests.support.waiting import DEADLINE_S
from tests.unit.core.decide.driving import spec

LONG = "${x} " * 20_000
ATTACK = "${" * 300_000


def run_with(value: str) -> tuple[Run, Attempt]:
    """A run of one task that is started with a large parameter, which the task does not use."""
    attempt = Attempt("a", 1, id=7)
    plan = WorkflowPlan.of(spec({"a": {}}))
    run = Run(3, plan, WorkflowState.RUNNING, 5, {"a": attempt}, NOW, NOW, startup={"big": value})
    return run, attempt


async def test_attempt_with_an_attack_fails_with_a_reason_that_names_the_parameter(
    database: Database,
) -> None:
    with pytest.raises(InvalidMacro, match=r"value of parameter 'big'.*more than 150,000"):
        await maker_of(database).make(*run_with(ATTACK))


@pytest.mark.parametrize("value", [LONG, ATTACK])
async def test_long_texts_do_not_hold_the_event_loop(database: Database, value: str) -> None:
    maker = maker_of(database)
    await maker.make(*run_with("short"))
    loop_s = time.thread_time()
    with contextlib.suppress(InvalidMacro):
        await maker.make(*run_with(value))
    assert time.thread_time() - loop_s < 0.05


async def test_one_call_grants_short_texts_while_long_ones_wait(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = maker_of(database)
    has_begun, may_go_on = threading.Event(), threading.Event()

    def slowly(*_: object) -> list[object]:
        has_begun.set()
        assert may_go_on.wait(DEADLINE_S)
        return []

    with monkeypatch.context() as patch:
        patch.setattr(payloads, "wanted_sources", slowly)
        first = asyncio.create_task(maker.make(*run_with(LONG)))
        await asyncio.to_thread(has_begun.wait, DEADLINE_S)
    patience = Patience(0.05)
    with pytest.raises(TextsWait) as caught:
        await maker.make(*run_with(LONG), patience)
    assert caught.value.retriable
    assert (await maker.make(*run_with("short"), patience)).parameters["big"] == "short"
    may_go_on.set()
    assert (await first).parameters["big"] == LONG


async def test_a_task_that_has_begun_is_finished_whatever_it_takes(database: Database) -> None:
    """Else the worker would ask for ever."""
    made = await maker_of(database).make(*run_with(LONG), Patience(1e-6))
    assert made.parameters["big"] == LONG


async def test_time_on_long_texts_is_taken_from_the_patience_of_the_call() -> None:
    side, patience = SideThread(), Patience(0.5)
    await side.run(lambda: time.sleep(0.02), patience)
    assert patience.left_s < 0.49
    with pytest.raises(TextsWait):
        await side.run(lambda: None, Patience(0.0))
