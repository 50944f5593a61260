"""Random graphs, outcomes and event orders against an independent reference."""

import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.core.events import PauseRequested, ResumeRequested
from shoal.core.states import TaskSignal, WorkflowState
from tests.unit.core.driving import Driver, spec

RULES = ["all_success", "all_done", "one_success", "any_failed", "always"]


@st.composite
def workflows(draw: st.DrawFn) -> tuple[dict[str, dict[str, Any]], dict[str, int], str]:
    """Tasks, how many attempts of each fail before one succeeds, and the strategy."""
    count = draw(st.integers(1, 9))
    tasks: dict[str, dict[str, Any]] = {}
    failures: dict[str, int] = {}
    for index in range(count):
        name = f"t{index}"
        upstream = draw(
            st.lists(st.sampled_from(list(tasks)), unique=True, max_size=4)
            if tasks
            else st.just([])
        )
        tasks[name] = {
            "depends_on": upstream,
            "run_when": draw(st.sampled_from(RULES)),
            "enabled": draw(st.integers(0, 9)) > 0,
            "retries": draw(st.integers(0, 2)),
        }
        failures[name] = draw(st.sampled_from([0, 0, 0, 1, 2, 9]))
    return tasks, failures, draw(st.sampled_from(["continue", "ignore"]))


def reference(
    tasks: dict[str, dict[str, Any]], failures: dict[str, int], strategy: str
) -> dict[str, str]:
    """What each task must end as: straight from the rules, in order of definition."""
    state: dict[str, str] = {}
    seen: dict[str, str] = {}  # passed, failed, blocked, neutral

    def passed(name: str) -> bool:
        return seen[name] == "passed" or (strategy == "ignore" and seen[name] == "failed")

    for name, task in tasks.items():
        upstream = task["depends_on"]
        bad = any(seen[u] in ("failed", "blocked") and not passed(u) for u in upstream)
        neutral = bool(upstream) and all(seen[u] == "neutral" for u in upstream)
        blocked = any(seen[u] == "blocked" for u in upstream)
        rule = task["run_when"] if task["enabled"] else "all_success"
        starts = {
            "all_success": not bad and not neutral,
            "all_done": True,
            "always": True,
            "one_success": not upstream or any(passed(u) for u in upstream),
            "any_failed": any(seen[u] == "failed" for u in upstream),
        }[rule]
        if not task["enabled"] or not starts:
            state[name] = "SKIPPED"
            if starts:
                seen[name] = "passed"
            elif rule == "all_success":
                seen[name] = "blocked" if bad else "neutral"
            elif rule == "one_success":
                seen[name] = "neutral" if neutral else "blocked"
            else:
                seen[name] = "blocked" if blocked else "neutral"
        else:
            state[name] = "FAILED" if failures[name] > task["retries"] else "SUCCEEDED"
            seen[name] = "failed" if state[name] == "FAILED" else "passed"
    return state


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(workflows(), st.integers(0, 2**32))
def test_every_order_of_events_ends_as_the_rules_say(
    drawn: tuple[dict[str, dict[str, Any]], dict[str, int], str], seed: int
) -> None:
    tasks, failures, strategy = drawn
    dice = random.Random(seed)
    run = Driver(spec(tasks, on_failure=strategy))
    left = dict(failures)
    for _ in range(1000):
        if run.state() in (WorkflowState.SUCCEEDED, WorkflowState.FAILED):
            break
        moves = ["claim"] * bool(run.queue) + ["end"] * bool(run.workers)
        if run.state() is WorkflowState.RUNNING and dice.random() < 0.05:
            run.send(PauseRequested(run.now))
            continue
        if run.state() is WorkflowState.PAUSED or not moves:
            run.send(ResumeRequested(run.now))
            continue
        if dice.choice(moves) == "claim":
            run.claim(dice.choice(list(run.queue.values())))
            continue
        task = run.run.task_of[dice.choice(list(run.workers))]
        if dice.random() < 0.1 and run.run.attempts[task].losses < 5:
            run.end(task, TaskSignal.LOSE)
        elif left[task]:
            left[task] -= 1
            run.end(task, TaskSignal.FAIL)
        else:
            run.end(task)
    expected = reference(tasks, failures, strategy)
    assert run.states() == expected
    failed = "FAILED" in expected.values() and strategy != "ignore"
    assert run.state() is (WorkflowState.FAILED if failed else WorkflowState.SUCCEEDED)
