"""Comparing and exporting large definitions: beside the event loop, with a bound for each."""

import asyncio
import time
from typing import Any

import pytest

from shoal.api.operations.authoring import plan
from shoal.api.operations.authoring.comparison import MOST_LINES, Side, compare, is_short
from shoal.api.routes.workflows import exchange
from shoal.runtime.side.process import SideProcesses
from tests.integration.api.conftest import PREFIX, Api, problem_of
from tests.support.waiting import DEADLINE_S

WORKFLOW = f"{PREFIX}/projects/p/workflows/large"
_SHELL = {"name": "a", "type": "SHELL"}


def costly_lines(count: int, unlike: str) -> str:
    """Return lines of which every other one is there often: the costliest ones to compare."""
    often = max(1, count // 100)
    lines = (f"x{n % (count // 2 // often)}\n{unlike}{n}" for n in range(count // 2))
    return "\n".join(lines)


def side(script: str, label: str = "version 1") -> Side:
    return Side({"tasks": [{**_SHELL, "params": {"script": script}}]}, label)


@pytest.mark.parametrize("is_written", [False, True])
async def test_lines_that_take_long_to_compare_hold_nobody(
    is_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One task is enough: the text of its script, or of the definition as it was written."""
    monkeypatch.setattr(plan, "COMPARISON_CPU_S", 0.5)
    texts = [costly_lines(4_000, unlike) for unlike in "uv"]
    before, after = (
        Side({"tasks": [_SHELL]}, "version", text) if is_written else side(text) for text in texts
    )
    async with SideProcesses() as processes:
        began_s = time.process_time()
        found = await plan.compared(processes, before, after)
        assert time.process_time() - began_s < 2.0
        short = await plan.compared(processes, side("true"), side("false", "version 2"))
    assert found.text is None
    assert len(found.tasks_changed) == (0 if is_written else 1)
    assert short.text


def many_lines(unlike: str) -> str:
    """Return 1,500 pairs of lines that are costly to compare, in fewer than 16,000 characters."""
    return "\n".join(f"#{n % 54}\n{unlike}" for n in range(1_500))


@pytest.mark.parametrize("is_written", [False, True])
def test_many_lines_are_not_compared_in_the_event_loop_however_short_they_are(
    is_written: bool,
) -> None:
    few = Side({"tasks": [_SHELL]}, "version", "# few\n" if is_written else None)
    texts = [many_lines(unlike) for unlike in ("", "#")]
    assert max(map(len, texts)) < 12_000
    before, after = (
        Side({"tasks": [_SHELL]}, "version", text) if is_written else side(text) for text in texts
    )
    assert is_short(few, few)
    assert not is_short(before, after)
    assert not is_short(few, after)
    assert not is_short(before, few)


def test_lines_that_only_one_side_was_written_with_do_not_count() -> None:
    """Such a text is not compared: both sides are written anew."""
    written = Side({"tasks": [_SHELL]}, "version", many_lines("#"))
    assert is_short(written, side("true"))


async def test_others_write_while_the_texts_of_a_plan_are_compared(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.publish("large", tasks=[{**_SHELL, "params": {"script": "true"}}])
    compared = plan.compared
    written: list[str] = []

    async def write_meanwhile(*given: Any) -> Any:
        async with asyncio.timeout(DEADLINE_S):
            await api.make("meanwhile")
        written.append("meanwhile")
        return await compared(*given)

    monkeypatch.setattr(plan, "compared", write_meanwhile)
    tasks = [{**_SHELL, "params": {"script": "false"}}]
    answer = await api.client.post(f"{WORKFLOW}/plan", json={"definition": {"tasks": tasks}})
    assert written == ["meanwhile"], answer.text
    assert answer.json()["version"] == 2
    assert (await api.client.get(WORKFLOW)).json()["version"] == 1


async def test_what_is_compared_elsewhere_is_compared_as_here() -> None:
    before, after = side("x" * 20_000), side("y" * 20_000, "version 2")
    async with SideProcesses() as processes:
        found = await plan.compared(processes, before, after)
    here = compare(before, after)
    assert found.text == here.text
    assert found.text
    assert [one.task for one in found.tasks_changed] == ["a"]


def test_many_tasks_are_not_written_to_be_compared_by_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: Side) -> str:
        raise AssertionError("it is written")

    monkeypatch.setattr(Side, "written", refuse)
    tasks = [{**_SHELL, "name": f"t{n}", "params": {}} for n in range(MOST_LINES // 3 + 1)]
    found = compare(Side({}, "nothing"), Side({"tasks": tasks}, "version 1"))
    assert found.text is None
    assert len(found.tasks_added) == len(tasks)


async def test_a_large_workflow_is_exported_as_a_small_one_or_refused(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "# é\n" + "echo one\n" * 10_000
    await api.publish("large", tasks=[{**_SHELL, "params": {"script": script}}])
    elsewhere = await api.client.get(f"{PREFIX}/projects/p/export")
    monkeypatch.setattr(exchange, "_SHORT_CHARACTERS", 1_000_000)
    here = await api.client.get(f"{PREFIX}/projects/p/export")
    assert elsewhere.json() == here.json()
    assert elsewhere.status_code == 200
    monkeypatch.undo()
    monkeypatch.setattr(exchange, "EXPORT_CPU_S", 0.001)
    refused = await api.client.get(f"{PREFIX}/projects/p/export")
    problem = problem_of(refused, 422, "invalid-request")
    assert "0.001 s of processor time" in problem["errors"][0]["message"]


async def test_comparing_versions_takes_the_turn_of_a_large_request(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.publish("large", tasks=[{**_SHELL, "params": {"script": "true"}}])
    taken: list[object] = []
    turn = api.services.large_requests.turn

    def noted(caller: object) -> Any:
        taken.append(caller)
        return turn(caller)

    monkeypatch.setattr(api.services.large_requests, "turn", noted)
    answer = await api.client.get(f"{WORKFLOW}/versions/1/diff")
    assert answer.json()["tasks_added"] == ["a"], answer.text
    assert len(taken) == 1
