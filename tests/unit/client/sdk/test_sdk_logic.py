"""Tasks that the master runs, written in Python."""

from datetime import timedelta

import pytest

from shoal.client import (
    AuthoringError,
    Conditions,
    Dependent,
    Map,
    Shell,
    SubWorkflow,
    Switch,
    Workflow,
    all_of,
    any_of,
    ended,
    none_of,
    ran,
)
from shoal.core.definition.kinds import choices_of


def test_choices_join_the_tasks_that_they_choose_from() -> None:
    with Workflow("w") as flow:
        load = Shell("load", script="true")
        report, mend = Shell("report", script="true"), Shell("mend", script="true")
        when = any_of(ended(load), none_of(ended(load, "failure")))
        Conditions("how", when=when, then=report, otherwise=[mend], depends_on=load)
        Switch("size", cases={"number(n) > 3": "big"}, default=[report], depends_on=mend)
        Shell("big", script="true", depends_on="size")
    spec = {task.name: task for task in flow.spec().tasks}
    assert spec["report"].depends_on == ("how", "size")
    assert spec["mend"].depends_on == ("how",)
    assert choices_of(spec["how"]) == {"report", "mend"}
    assert choices_of(spec["size"]) == {"big", "report"}


def test_other_workflows_are_named_with_their_project() -> None:
    with Workflow("w") as flow:
        Dependent(
            "wait",
            when=all_of(
                ran("etl/orders", "today", task="load"), ran("x", "last1Days", if_missing="skip")
            ),
        )
        SubWorkflow("child", runs="etl/clean", version=3, given={"n": 1})
        Map("each", runs="part", items=["a", 2], parameter="part", parallel=4)
        Map("found", runs="part", items="${parts}")
    tasks = {task.name: task.params for task in flow.spec().tasks}
    assert tasks["wait"] == {
        "when": {
            "all": [
                {"workflow": "orders", "date": "today", "project": "etl", "task": "load"},
                {"workflow": "x", "date": "last1Days", "if_missing": "skip"},
            ]
        }
    }
    assert tasks["child"] == {
        "workflow": "clean",
        "project": "etl",
        "version": 3,
        "parameters": {"n": 1},
    }
    assert tasks["each"]["items"] == ["a", 2]
    assert tasks["found"]["items"] == "${parts}"


def test_options_of_workflows_and_tasks_reach_the_definition() -> None:
    with Workflow(
        "w",
        overlap="queue",
        max_active=2,
        timeout=timedelta(hours=1),
        timeout_action="both",
        owner="ada@example.org",
        deadline="08:00",
        priority="MEDIUM",
    ) as flow:
        Shell(
            "a",
            script="true",
            delay="5s",
            retry_backoff=2,
            retry_jitter=0.1,
            retry_max_delay=timedelta(minutes=5),
            concurrency_group="db",
            timeout_action="warn",
            parameters={"n": 3},
        )
    definition = flow.to_dict()
    assert {k: definition[k] for k in ("overlap", "max_active", "timeout", "timeout_action")} == {
        "overlap": "queue",
        "max_active": 2,
        "timeout": 3600.0,
        "timeout_action": "both",
    }
    assert (definition["owner"], definition["deadline"]) == ("ada@example.org", "08:00")
    assert "priority" not in definition, "what is at its default is left out"
    task = flow.spec().tasks[0]
    assert (task.delay, task.retry_max_delay, task.parameters) == (5, 300, {"n": "3"})
    with pytest.raises(AuthoringError, match="unknown option overlapp; a workflow has"):
        Workflow("w", overlapp="queue")  # type: ignore[call-arg]  # what a typo does
