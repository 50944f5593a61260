"""What simulated runs do is what runs do: each rule once, by times that can be reckoned."""

from datetime import timedelta
from typing import Any

import pytest

from shoal.insight.simulate.engine.ledger import Notes
from shoal.insight.simulate.model import GroupModel, TaskHistory
from shoal.insight.simulate.result import simulate
from shoal.insight.simulate.simulation import InvalidPeriod, Question, play
from tests.unit.insight.models import MONDAY, arrival, model, played, question, workflow

Tasks = dict[str, dict[str, Any]]
FAILS = TaskHistory(seconds=(10,), failure=1.0)


def notes_of(simulated: Any, *arrivals: Any, name: str = "w", **fields: Any) -> Notes:
    """Play the arrivals; return what was noted of one workflow."""
    cluster, _ = played(simulated, arrivals, **fields)
    return cluster.ledger.of[f"default/{name}"]


def test_tasks_follow_each_other() -> None:
    chain = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["a", "b"]}}
    seen = notes_of(model(workflow("w", chain, {"a": 10, "b": 20, "c": 30})), arrival("w", 0))
    assert (seen.runs, seen.succeeded, list(seen.lasted)) == (1, 1, [60.0])


def test_a_worker_takes_its_time_to_start() -> None:
    slow = model(workflow("w", {"a": {}, "b": {"depends_on": ["a"]}}, {"a": 10, "b": 20}))
    slow = slow.model_copy(update={"groups": {"default": GroupModel(slots=1, start_s=0.5)}})
    assert list(notes_of(slow, arrival("w", 0)).lasted) == [31.0]


def test_retries_wait_for_their_delay_and_then_the_run_fails() -> None:
    task = {"retries": 2, "retry_delay": 60, "retry_backoff": 2.0}
    seen = notes_of(model(workflow("w", {"a": task}, history={"a": FAILS})), arrival("w", 0))
    assert (seen.failed, list(seen.lasted)) == (1, [10 + 60 + 10 + 120 + 10.0])
    assert len(seen.reasons) == 1


def test_a_task_ends_at_its_timeout_and_has_failed() -> None:
    seen = notes_of(model(workflow("w", {"a": {"timeout": 5}}, {"a": 30})), arrival("w", 0))
    assert (seen.failed, list(seen.lasted)) == (1, [5.0])


def test_a_task_that_is_only_warned_of_goes_on() -> None:
    task = {"timeout": 5, "timeout_action": "warn"}
    seen = notes_of(model(workflow("w", {"a": task}, {"a": 30})), arrival("w", 0))
    assert (seen.succeeded, list(seen.lasted)) == (1, [30.0])


def test_a_workflow_is_stopped_at_its_timeout_and_its_slots_are_free() -> None:
    long = workflow(
        "w", {"a": {}, "b": {}}, {"a": 900, "b": 900}, timeout=60, timeout_action="stop"
    )
    short = workflow("v", {"a": {}}, {"a": 10})
    cluster, claims = played(model(long, short, slots=2), [arrival("w", 0), arrival("v", 5)])
    assert cluster.ledger.of["default/w"].stopped == 1
    assert claims.waits() == [0.0, 0.0, 55.0]
    assert cluster.groups["default"].busy_s == 2 * 60 + 10


def test_failing_fast_kills_what_runs_and_frees_its_slot() -> None:
    tasks: Tasks = {"bad": {}, "good": {}, "after": {}}
    history = {"bad": FAILS, "good": TaskHistory(seconds=(500,)), "after": FAILS}
    fast = workflow("w", tasks, history=history, on_failure="fail_fast")
    cluster, _ = played(model(fast, slots=2), [arrival("w", 0)])
    assert list(cluster.ledger.of["default/w"].lasted) == [10.0]
    assert cluster.attempts == 2  # the third was in the queue when the first failed
    assert cluster.groups["default"].busy_s == 20.0


def test_priorities_go_before_age() -> None:
    low = workflow("low", {"a": {}}, {"a": 100}, priority="LOW")
    high = workflow("high", {"a": {}}, {"a": 100}, priority="HIGH")
    arrivals = [arrival("low", 0, 1), arrival("low", 1, 2), arrival("high", 2)]
    _, claims = played(model(low, high, slots=1), arrivals)
    assert [key for key, *_ in claims.seen] == [one.key for one in (arrivals[i] for i in (0, 2, 1))]


def test_priority_of_a_task_counts_within_its_run() -> None:
    tasks = {"late": {"priority": "LOW"}, "soon": {"priority": "HIGH"}, "next": {}}
    seconds = dict.fromkeys(tasks, 10.0)
    _, claims = played(model(workflow("w", tasks, seconds), slots=1), [arrival("w", 0)])
    assert [task for _, task, *_ in claims.seen] == ["soon", "next", "late"]


def test_a_concurrency_group_lets_as_many_run_as_it_has_slots() -> None:
    tasks = {name: {"concurrency_group": "narrow"} for name in ("a", "b", "c")}
    narrow = workflow("w", tasks, dict.fromkeys(tasks, 10.0))
    simulated = model(narrow, slots=3, concurrency={"default/narrow": 1})
    cluster, claims = played(simulated, [arrival("w", 0)])
    pool = cluster.concurrency["default/narrow"]
    assert sorted(pool.waits) == [0.0, 10.0, 20.0]
    assert (pool.most_taken, pool.busy_s) == (1, 30.0)
    assert claims.waits() == [0.0, 0.0, 0.0]  # of slots of workers there were enough


@pytest.mark.parametrize(
    ("overlap", "runs", "refused", "stopped", "lasted"),
    [
        ("allow", 3, 0, 0, [100.0, 100.0, 100.0]),
        ("queue", 3, 0, 0, [100.0, 100.0, 100.0]),
        ("skip_new", 1, 2, 0, [100.0]),
        ("queue_latest", 3, 0, 1, [100.0, 100.0]),
        ("replace", 3, 0, 2, [10.0, 10.0, 100.0]),
    ],
)
def test_overlap_policies(
    overlap: str, runs: int, refused: int, stopped: int, lasted: list[float]
) -> None:
    one = workflow("w", {"a": {}}, {"a": 100}, overlap=overlap)
    seen = notes_of(model(one, slots=9), *(arrival("w", 10 * i) for i in range(3)))
    assert (seen.runs, seen.refused, seen.stopped) == (runs, refused, stopped)
    assert sorted(seen.lasted) == sorted(lasted)
    if overlap == "queue":
        assert sorted(seen.admission) == [0.0, 90.0, 180.0]


def test_a_branch_is_chosen_by_parameters() -> None:
    tasks: Tasks = {
        "route": {
            "type": "SWITCH",
            "params": {
                "cases": [{"when": "size == 'big'", "then": ["big"]}],
                "default": ["small"],
            },
        },
        "big": {"depends_on": ["route"]},
        "small": {"depends_on": ["route"]},
    }
    one = workflow("w", tasks, {"big": 90, "small": 10}, parameters={"size": "small"})
    cluster, claims = played(
        model(one), [arrival("w", 0), arrival("w", 9, parameters={"size": "big"})]
    )
    assert [task for _, task, *_ in claims.seen] == ["small", "big"]
    assert not cluster.missing


def test_outputs_of_the_history_choose_a_branch() -> None:
    tasks: Tasks = {
        "count": {},
        "route": {
            "type": "SWITCH",
            "depends_on": ["count"],
            "params": {"cases": [{"when": "number(rows) > 5", "then": ["many"]}]},
        },
        "many": {"depends_on": ["route"]},
    }
    given = TaskHistory(seconds=(1,), outputs=({"rows": "9"},))
    one = workflow("w", tasks, {"many": 5}, history={"count": given})
    _, claims = played(model(one), [arrival("w", 0)])
    assert [task for _, task, *_ in claims.seen] == ["count", "many"]


def test_what_only_history_could_tell_is_said() -> None:
    tasks: Tasks = {
        "route": {
            "type": "SWITCH",
            "params": {"cases": [{"when": "number(rows) > 5", "then": ["x"]}]},
        },
        "x": {"depends_on": ["route"]},
    }
    found = simulate(model(workflow("w", tasks, {"x": 5}, cron="0 0 * * * ?")), question(2))
    assert [one.failed for one in found.workflows] == [2]
    assert any("the SWITCH task route fails" in sentence for sentence in found.left_out)


def test_sub_workflows_run_as_part_of_their_parents() -> None:
    each = {"type": "MAP", "params": {"workflow": "child", "items": [1, 2, 3], "parallel": 2}}
    parent = workflow("parent", {"each": each, "end": {"depends_on": ["each"]}}, {"end": 5})
    child = workflow("child", {"a": {}}, {"a": 10}, parameters={"item": ""})
    cluster, _ = played(model(parent, child, slots=9), [arrival("parent", 0)])
    assert list(cluster.ledger.of["default/parent"].lasted) == [10 + 10 + 5.0]
    assert cluster.ledger.of["default/child"].succeeded == 3


def test_a_failed_sub_workflow_goes_on_with_the_retry_of_its_task() -> None:
    sub = {"type": "SUB_WORKFLOW", "params": {"workflow": "child"}, "retries": 1}
    parent = workflow("parent", {"sub": sub})
    child = workflow("child", {"good": {}, "bad": {}}, {"good": 10}, history={"bad": FAILS})
    cluster, claims = played(model(parent, child), [arrival("parent", 0)])
    assert cluster.ledger.of["default/parent"].failed == 1
    seen = cluster.ledger.of["default/child"]
    assert (seen.runs, seen.failed) == (1, 1)  # the same run twice, counted once
    assert sorted((task, number) for _, task, number, _ in claims.seen) == [
        ("bad", 1),
        ("bad", 2),
        ("good", 1),
    ]


def test_a_sub_workflow_that_is_not_there_fails_its_task_and_is_said() -> None:
    sub = {"type": "SUB_WORKFLOW", "params": {"workflow": "nowhere"}}
    cluster, _ = played(model(workflow("w", {"sub": sub})), [arrival("w", 0)])
    assert cluster.ledger.of["default/w"].failed == 1
    assert [text for text in cluster.missing if "starts default/nowhere" in text]


def test_a_dependent_task_waits_for_the_run_of_its_day() -> None:
    wait = {"type": "DEPENDENT", "params": {"when": {"workflow": "up", "date": "today"}}}
    up = workflow("up", {"a": {}}, {"a": 100}, cron="0 30 0 * * ?")
    down = workflow("down", {"wait": wait, "b": {"depends_on": ["wait"]}}, {"b": 10})
    down = down.model_copy(
        update={
            "definition": down.definition.model_copy(
                update={
                    "schedules": workflow("x", {"a": {}}, cron="0 0 0 * * ?").definition.schedules
                }
            )
        }
    )
    cluster = play(model(up, down), question(2))
    assert list(cluster.ledger.of["default/down"].lasted) == [30 * 60 + 100 + 10.0]
    assert not cluster.dependencies.assumes


def test_runs_from_before_the_start_are_taken_for_successes_and_that_is_said() -> None:
    wait = {"type": "DEPENDENT", "params": {"when": {"workflow": "up", "date": "last1Days"}}}
    up = workflow("up", {"a": {}}, {"a": 100}, cron="0 30 0 * * ?")
    down = workflow("down", {"wait": wait}, cron="0 0 1 * * ?")
    found = simulate(model(up, down), question(2))
    assert {one.name: one.succeeded for one in found.workflows}["default/down"] == 1
    assert any("before the start" in sentence for sentence in found.left_out)


def test_a_task_looks_again_until_it_finds() -> None:
    history = {"wait": TaskHistory(seconds=(1,), looks=(3,), again_s=(60,))}
    seen = notes_of(model(workflow("w", {"wait": {}}, history=history)), arrival("w", 0))
    assert list(seen.lasted) == [3 * 61 + 1.0]
    assert len(seen.waits) == 4


def test_runs_beyond_their_deadline_are_late() -> None:
    one = workflow("w", {"a": {}}, {"a": 900}, cron="0 0 * * * ?", deadline="10m")
    found = simulate(model(one), question(3))
    (seen,) = found.workflows
    assert (seen.with_deadline, seen.late.count, seen.late.max_s) == (3, 3, 300.0)
    assert seen.first_late_at == "2026-03-02T00:10:00Z"
    assert found.late == [seen]


def test_a_run_that_goes_on_at_the_end_is_late_as_well() -> None:
    one = workflow("w", {"a": {}}, {"a": 90_000}, deadline="10m")
    seen = notes_of(model(one), arrival("w", 0), hours=1)
    assert (seen.unfinished, list(seen.late)) == (1, [3_000.0])


def test_requests_come_at_their_rate() -> None:
    busy = {hour: 30.0 for hour in range(168) if 8 <= hour % 24 < 18}
    one = workflow("w", {"a": {}}, {"a": 1}, requests=busy)
    found = play(model(one, slots=99), question(7 * 24))
    runs = found.ledger.of["default/w"].runs
    assert 2_100 * 0.9 < runs < 2_100 * 1.1  # its standard deviation is 46
    night = [hour.attempts for i, hour in enumerate(found.groups["default"].hours) if i % 24 < 8]
    assert sum(night) == 0


def test_a_shifted_schedule_fires_later_with_the_same_durations() -> None:
    one = workflow("w", {"a": {}}, {"a": [10, 20, 400]}, cron="0 0 * * * ?")
    shifted = question(24, shifts={"default/w": timedelta(minutes=15)})
    plain, later = (
        play(model(one), asked).ledger.of["default/w"] for asked in (question(), shifted)
    )
    # The fire time of the last hour of the day before comes into the day instead of none.
    assert (plain.runs, later.runs) == (24, 24)
    assert list(plain.lasted)[:23] == list(later.lasted)[:23]


def test_a_period_has_a_beginning_before_its_end() -> None:
    with pytest.raises(InvalidPeriod, match="at most 366 days"):
        Question(MONDAY, MONDAY)
