"""Which definition of a parameter a task sees, and what day it is for it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.definition.parameters import launch
from shoal.core.macros.placeholders import InvalidMacro
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.scope import SecretUnusable, TaskScope, base_of, upstream_outputs
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.core.task_types import TaskParams
from shoal.runtime.plugins import load_task_type
from tests.unit.core.decide.driving import START, spec

VALUES = st.text(alphabet="$[]{}'ab+-1y \n\"`\\")


def model_of(run: Run) -> type[TaskParams]:
    return load_task_type(run.plan.tasks["a"].type).Params


def run_of(
    tasks: dict[str, dict[str, Any]],
    outputs: dict[str, dict[str, str]] | None = None,
    *,
    project: dict[str, str] | None = None,
    startup: dict[str, str] | None = None,
    **fields: Any,
) -> Run:
    """A run whose tasks in ``outputs`` have succeeded, one minute after the other."""
    plan = WorkflowPlan.of(spec(tasks, **fields))
    attempts = {name: Attempt(name, 1, id=n) for n, name in enumerate(plan.tasks, 1)}
    for minute, (name, given_on) in enumerate((outputs or {}).items()):
        ended = START + timedelta(minutes=minute)
        attempts[name] = replace(
            attempts[name], state=TaskState.SUCCEEDED, outputs=given_on, finished_at=ended
        )
    found = launch(plan.spec.parameters, project or {}, startup or {})
    return Run(
        3,
        plan,
        WorkflowState.RUNNING,
        5,
        attempts,
        START,
        START,
        parameters=found.parameters,
        startup=found.startup,
    )


def seen(run: Run, task: str) -> dict[str, str]:
    return TaskScope(run, run.attempts[task]).parameters()


# -- levels ----------------------------------------------------------------------------------------

LEVELS = ("project", "workflow", "output", "task", "startup")


@pytest.mark.parametrize("present", range(1, 32))
def test_innermost_level_that_has_a_name_wins(present: int) -> None:
    on = {level for bit, level in enumerate(LEVELS) if present >> bit & 1}
    if "startup" in on and "workflow" not in on:
        return  # refused at the launch: only parameters of the workflow can be given
    run = run_of(
        {
            "a": {},
            "b": {"depends_on": ["a"], "parameters": {"x": "task"} if "task" in on else {}},
        },
        {"a": {"x": "output"}} if "output" in on else {},
        project={"x": "project"} if "project" in on else {},
        startup={"x": "startup"} if "startup" in on else {},
        parameters={"x": "workflow"} if "workflow" in on else {},
    )
    assert seen(run, "b") == {"x": [level for level in LEVELS if level in on][-1]}


def test_value_that_names_itself_builds_on_the_next_level_out() -> None:
    run = run_of(
        {"a": {}, "b": {"depends_on": ["a"], "parameters": {"path": "${path}/task"}}},
        project={"path": "/data"},
        parameters={"path": "${path}/$[yyyy]"},
    )
    assert seen(run, "a") == {"path": "/data/2026"}
    assert seen(run, "b") == {"path": "/data/2026/task"}
    with_output = run_of(
        {"a": {}, "b": {"depends_on": ["a"], "parameters": {"path": "${path}/task"}}},
        {"a": {"path": "$[yyyy]"}},
        project={"path": "/data"},
    )
    assert seen(with_output, "b") == {"path": "$[yyyy]/task"}


def test_value_that_names_itself_on_the_outermost_level_is_a_circle() -> None:
    with pytest.raises(InvalidMacro, match="circle: path → path"):
        seen(run_of({"a": {"parameters": {"path": "${path}/x"}}}), "a")


def test_circle_over_two_levels_is_found() -> None:
    run = run_of({"a": {"parameters": {"x": "${y}"}}}, parameters={"y": "${x}"})
    with pytest.raises(InvalidMacro, match="circle: x → y → x"):
        seen(run, "a")


def test_parameters_of_tasks_refer_to_all_others_and_stay_with_their_task() -> None:
    run = run_of(
        {
            "a": {"parameters": {"file": "${dir}/${day}.csv"}},
            "b": {"parameters": {"dir": "/b"}},
        },
        project={"dir": "/data"},
        parameters={"day": "$[yyyyMMdd]"},
    )
    assert seen(run, "a")["file"] == "/data/20260101.csv"
    assert "file" not in seen(run, "b")


@given(VALUES, VALUES)
def test_outputs_and_values_given_at_a_start_arrive_as_they_are(output: str, typed: str) -> None:
    run = run_of(
        {"a": {}, "b": {"depends_on": ["a"], "parameters": {"z": "<${x}|${y}>"}}},
        {"a": {"x": output}},
        startup={"y": typed},
        parameters={"y": ""},
    )
    assert seen(run, "b") == {"x": output, "y": typed, "z": f"<{output}|{typed}>"}


def test_tasks_are_known_by_the_names_of_other_schedulers() -> None:
    names = (
        *("task.instance.id", "task.definition.name", "workflow.instance.id"),
        *("workflow.definition.name", "project.name"),
    )
    text = " ".join(f"${{system.{name}}}" for name in names)
    run = run_of({"a": {"params": {"script": text, "arguments": [text]}}})
    assert TaskScope(run, run.attempts["a"]).params(model_of(run)) == {
        "script": "1 a 3 w default",
        "arguments": ["1 a 3 w default"],
    }


# -- outputs ---------------------------------------------------------------------------------------


def after(*upstream: str) -> dict[str, Any]:
    return {"depends_on": list(upstream)}


def test_outputs_of_all_tasks_upstream_are_seen_and_of_no_others() -> None:
    tasks = {"a": {}, "b": after("a"), "c": after("b"), "beside": {}, "d": after("c")}
    run = run_of(tasks, {"a": {"x": "1"}, "beside": {"y": "2"}, "b": {"z": "3"}})
    assert upstream_outputs(run, "c") == {"x": "1", "z": "3"}
    assert upstream_outputs(run, "b") == {"x": "1"}
    assert upstream_outputs(run, "a") == {}


def test_task_between_overrides_the_one_before_even_if_a_short_cut_leads_past_it() -> None:
    tasks = {"a": {}, "b": after("a"), "c": after("b"), "d": after("a", "c")}
    run = run_of(tasks, {"a": {"x": "a"}, "b": {"x": "b"}})
    assert upstream_outputs(run, "d") == {"x": "b"}


def test_nearest_counts_whenever_it_ended() -> None:
    tasks = {"near": {}, "far": {}, "middle": after("far"), "end": after("near", "middle")}
    for order in (("near", "far"), ("far", "near")):
        run = run_of(tasks, {name: {"x": name} for name in order})
        assert upstream_outputs(run, "end") == {"x": "near"}


def test_of_two_equally_near_the_one_that_ended_last_counts() -> None:
    tasks = {"a": {}, "b": {}, "end": after("b", "a")}
    for order in (("a", "b"), ("b", "a")):
        run = run_of(tasks, {name: {"x": name} for name in order})
        assert upstream_outputs(run, "end") == {"x": order[-1]}


def test_outputs_of_an_attempt_that_did_not_succeed_do_not_count() -> None:
    run = run_of({"a": {}, "b": after("a")}, {"a": {"x": "1"}})
    for state in (TaskState.FAILED, TaskState.KILLED, TaskState.RUNNING):
        run.attempts["a"] = replace(run.attempts["a"], state=state)
        assert upstream_outputs(run, "b") == {}


@given(st.data())
def test_outputs_agree_with_a_naive_search(data: st.DataObject) -> None:
    """Longest ways by trying all ways; of each name the best giver by the rule's own words."""
    count = data.draw(st.integers(1, 7))
    tasks = {
        f"t{n}": after(*data.draw(st.sets(st.sampled_from([f"t{m}" for m in range(n)]))))
        if n
        else {}
        for n in range(count)
    }
    order = data.draw(st.permutations(list(tasks)))
    givers = {
        name: data.draw(st.dictionaries(st.sampled_from("xyz"), st.just(name))) for name in order
    }
    run = run_of(tasks, givers)
    target = f"t{count - 1}"

    def ways(name: str) -> list[int]:
        if name == target:
            return [0]
        return [1 + way for child in run.plan.downstream[name] for way in ways(child)]

    expected: dict[str, str] = {}
    for name in "xyz":
        able = [t for t in tasks if t != target and name in givers[t] and ways(t)]
        if able:
            expected[name] = min(able, key=lambda t: (max(ways(t)), -order.index(t)))
    assert upstream_outputs(run, target) == expected


def test_outputs_of_a_long_chain_are_found_in_time() -> None:
    names = [f"t{n}" for n in range(10_000)]
    tasks = {name: after(names[n - 1]) if n else {} for n, name in enumerate(names)}
    run = run_of(tasks, {name: {"x": name} for name in names[:-1]})
    assert upstream_outputs(run, names[-1]) == {"x": names[-2]}


# -- secrets ---------------------------------------------------------------------------------------


def secret(name: str) -> str:
    return {"db": "hush $[yyyy] ${x}"}[name]


def test_secrets_are_data_wherever_they_are_used() -> None:
    run = run_of(
        {"a": {"parameters": {"url": "u:${password}@h", "key": "db", "any": "${secret.${key}}"}}},
        parameters={"password": "${secret.db}", "x": "no"},
    )
    found = TaskScope(run, run.attempts["a"], secret).parameters()
    assert found["url"] == "u:hush $[yyyy] ${x}@h"
    assert found["password"] == found["any"] == "hush $[yyyy] ${x}"


def test_values_from_outside_cannot_name_a_secret() -> None:
    run = run_of(
        {"a": {}, "b": {"depends_on": ["a"], "parameters": {"z": "${x}"}}},
        {"a": {"x": "${secret.db}"}},
    )
    assert TaskScope(run, run.attempts["b"], secret).parameters()["z"] == "${secret.db}"


@pytest.mark.parametrize("argument", ["${secret.db}", "${p}", "${q}"])
def test_secret_never_reaches_a_command_line(argument: str) -> None:
    run = run_of(
        {
            "a": {
                "params": {"script": "true", "arguments": ["x", argument]},
                "parameters": {"p": "${secret.db}", "q": "<${p}>"},
            }
        }
    )
    scope = TaskScope(run, run.attempts["a"], secret)
    scope.parameters()  # what was rendered before counts as well
    with pytest.raises(SecretUnusable, match=r"command line.*SHOAL_SECRET_db"):
        scope.params(model_of(run))


def test_task_that_the_master_runs_sees_what_holds_no_secret() -> None:
    run = run_of({"a": {"parameters": {"p": "<${secret.db}>", "q": "${p}", "r": "1"}}})
    scope = TaskScope(run, run.attempts["a"])
    assert scope.parameters_without_secrets() == {"r": "1"}
    assert scope.render("${r}") == "1"
    with pytest.raises(SecretUnusable, match="the secret db is for tasks that run on a worker"):
        scope.render("${q}")


def test_programs_of_spark_are_left_alone_like_all_programs() -> None:
    params = {"script": "print('${x}')", "name": "${x}"}
    run = run_of({"a": {"type": "SPARK", "params": params}}, parameters={"x": "value"})
    assert TaskScope(run, run.attempts["a"]).params(model_of(run)) == {
        "script": "print('${x}')",
        "name": "value",
    }


# -- dates -----------------------------------------------------------------------------------------


def backfilled(logical: datetime, zone: str, rule: str) -> Run:
    run = run_of({"a": {}}, backfill_base=rule)
    run.logical_time, run.timezone, run.backfill_id = logical, zone, 1
    return run


def test_base_is_the_next_day_only_in_backfills_that_want_it() -> None:
    logical = datetime(2026, 3, 28, 23, 30, tzinfo=UTC)
    next_day = backfilled(logical, "UTC", "next_day")
    assert base_of(next_day) == logical + timedelta(days=1)
    text = "${system.biz.date} ${system.biz.curdate} ${system.datetime}"
    assert (
        TaskScope(next_day, next_day.attempts["a"]).render(text)
        == "20260328 20260329 20260329233000"
    )
    assert base_of(backfilled(logical, "UTC", "logical_time")) == logical
    next_day.backfill_id = None
    assert base_of(next_day) == logical
    assert TaskScope(next_day, next_day.attempts["a"]).render("${system.biz.date}") == "20260327"


ZONES = sorted(available_timezones())
MOMENTS = st.integers(631_152_000, 2_114_380_800).map(lambda s: datetime.fromtimestamp(s, UTC))


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2037, 1, 1)).map(
        lambda t: t.replace(microsecond=0)
    ),
    st.sampled_from(ZONES),
)
def test_next_day_is_a_calendar_day_whatever_the_clock_does(moment: datetime, zone: str) -> None:
    shifted = base_of(backfilled(moment, zone, "next_day"))
    local = moment.astimezone(ZoneInfo(zone))
    days = (shifted.date() - local.date()).days
    # A time of day that the clock skips moves behind the gap: rarely past midnight.
    assert days == 1 or (days == 2 and shifted.time() <= local.time())
    if days == 1 and shifted.time() != local.time():
        assert shifted.time() > local.time()


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2037, 1, 1)).map(
        lambda t: t.replace(microsecond=0)
    ),
    st.sampled_from(ZONES),
    st.integers(-400, 400),
)
def test_day_steps_keep_the_time_of_day_in_every_zone(
    moment: datetime, zone: str, days: int
) -> None:
    run = backfilled(moment, zone, "logical_time")
    local = base_of(run)
    text = f"$[yyyy-MM-dd{days:+}]|$[HH:mm:ss{days:+}]|$[add_days(yyyy-MM-dd,{days})]"
    day, clock, same = TaskScope(run, run.attempts["a"]).render(text).split("|")
    wanted = local.date() + timedelta(days=days)
    assert same == day
    naive = datetime.combine(wanted, local.time())
    exists = naive.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).astimezone(ZoneInfo(zone))
    if exists.replace(tzinfo=None) == naive:
        assert (day, clock) == (wanted.isoformat(), local.time().isoformat())
    else:
        assert (day, clock) >= (wanted.isoformat(), "00:00:00")
