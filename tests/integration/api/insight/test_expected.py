"""When open runs are expected to end, a run against what is usual, and what that asks of the
database."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event

from shoal.core.runs.states import TaskState, WorkflowState
from tests.integration.api.conftest import PREFIX, Api
from tests.integration.api.views.runs import happened
from tests.support.insight import rollups
from tests.support.insight.rollups import DAY, baseline

_T, _W = TaskState, WorkflowState
RUNNING: dict[str, Any] = {"state": _W.RUNNING, "tasks": {"fetch": _T.RUNNING}}
PATHS = ("instances", "today")


async def get(api: Api, path: str) -> Any:
    answer = await api.client.get(f"{PREFIX}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


@contextmanager
def asked() -> Iterator[set[str]]:
    """Collect the statements about roll-ups; one that took long is asked again in a thread."""
    found: set[str] = set()

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if "rollup" in statement:
            found.add(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def runs_of(path: str, answer: Any) -> list[Any]:
    lanes = answer["items"] if path == "today" else [{"runs": answer["items"]}]
    return [run for lane in lanes for run in lane["runs"]]


@pytest.mark.parametrize("path", PATHS)
async def test_a_list_of_many_open_runs_asks_once_for_all_their_baselines(
    api: Api, path: str
) -> None:
    now = datetime.now(UTC)
    names = [f"w{number}" for number in range(20)]
    for name in names:
        await api.publish(name)
        await happened(api, name, at=now, **RUNNING)
    blocks = {("p", name): [baseline(p50=100.0 + len(name))] for name in names}
    await rollups.store(api.services.store.database, "baselines", DAY, blocks)
    with asked() as first:
        shown = runs_of(path, await get(api, path))
    assert len(shown) == 20
    assert all(one["expected_end_at"] and one["late_after_at"] for one in shown)
    assert len(first) == 2, first  # which result is the newest, and the rows of all workflows
    with asked() as again:
        await get(api, path)
    assert len(again) == 1, again


@pytest.mark.parametrize("path", PATHS)
async def test_runs_that_have_ended_ask_for_nothing(api: Api, path: str) -> None:
    await rollups.stock(api.services.store.database, "p")
    await api.publish("daily")
    for state in (_W.SUCCEEDED, _W.FAILED, _W.QUEUED):
        run = await happened(api, "daily", at=datetime.now(UTC), state=state)
    with asked() as found:
        shown = runs_of(path, await get(api, path))
    assert [one["expected_end_at"] for one in shown] == [None] * 3
    assert not found
    with asked() as found:
        await get(api, f"instances/{run.id}")
    assert not found


async def test_expected_end_is_by_the_hour_and_weekday_of_the_start(api: Api) -> None:
    start = datetime.now(UTC) - timedelta(seconds=30)
    usual = [
        baseline(p50=100.0),
        baseline(p50=1_000.0, weekday=start.weekday()),
        baseline(p50=10_000.0, hour=start.hour),
    ]
    await rollups.store(api.services.store.database, "baselines", DAY, {("p", "daily"): usual})
    await api.publish("daily")
    run = await happened(api, "daily", at=start, created_at=start, **RUNNING)
    [shown] = (await get(api, "instances"))["items"]
    end = datetime.fromisoformat(shown["expected_end_at"])
    assert (end - start).total_seconds() == pytest.approx(10_000.0, abs=1)
    late = datetime.fromisoformat(shown["late_after_at"])
    assert (late - start).total_seconds() == pytest.approx(18_000.0, abs=1)
    stored = datetime.now(UTC)
    by_run = await get(api, f"instances/{run.id}")
    assert by_run["expected_end_at"] == shown["expected_end_at"], "no task has a baseline"
    tasks = [baseline("fetch", 60.0), baseline("report", 600.0, wait_p50_s=5.0)]
    newer = {("p", "daily"): [*usual, *tasks]}
    await rollups.store(api.services.store.database, "baselines", DAY + timedelta(days=1), newer)
    by_tasks = await get(api, f"instances/{run.id}/baseline")
    assert by_tasks["expected_by"] == "tasks"
    found = await get(api, f"instances/{run.id}")
    end = datetime.fromisoformat(found["expected_end_at"])
    # fetch began when it was stored, and report waits and runs behind it
    rest = timedelta(seconds=665)
    assert start + rest <= end <= stored + rest
    why = await get(api, f"instances/{run.id}/why")
    assert [one["code"] for one in why["findings"]][:1] == ["run.expected"]


async def test_run_against_what_is_usual(api: Api) -> None:
    await api.publish("daily")
    end = datetime.now(UTC)
    run = await happened(api, "daily", at=end, tasks={"fetch": _T.SUCCEEDED})
    nothing = await get(api, f"instances/{run.id}/baseline")
    assert nothing["of"] is None
    assert nothing["run"]["verdict"] == "unknown"
    assert nothing["run"]["usual"] is None
    usual = [baseline(p50=100.0), baseline("fetch", 50.0)]
    await rollups.store(api.services.store.database, "baselines", DAY, {("p", "daily"): usual})
    found = await get(api, f"instances/{run.id}/baseline")
    assert found["of"] == "2026-01-31"
    assert found["run"]["verdict"] == "faster"  # it took no time
    assert found["run"]["difference_s"] == -100.0
    assert found["run"]["usual"]["p95_s"] == 120.0
    assert (found["expected_end_at"], found["late_after_at"]) == (None, None)
    assert {one["task"] for one in found["tasks"]} == {"fetch", "report"}
    [fetch] = [one for one in found["tasks"] if one["task"] == "fetch"]
    assert fetch["usual"]["p50_s"] == 50.0
