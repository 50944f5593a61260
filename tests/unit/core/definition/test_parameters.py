"""What a run starts with, and what definitions may say about parameters and secrets."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.parameters import Launch, ParameterSpec, definition_problem, launch
from shoal.core.macros import placeholders as macros
from shoal.runtime.plugins import check_definition
from tests.unit.core.decide.driving import spec

BASE = datetime(2026, 8, 1, tzinfo=UTC)


def parameters(**given: Any) -> dict[str, ParameterSpec]:
    return dict(spec({"a": {}}, parameters=given).parameters)


def problems(**fields: Any) -> dict[str, str]:
    """What is wrong with a definition, by field."""
    tasks = fields.pop("tasks", [{"name": "a", "type": "SHELL", "params": {"script": "true"}}])
    try:
        check_definition({"name": "w", "tasks": tasks, **fields})
    except InvalidDefinition as error:
        return {problem.field: problem.message for problem in error.problems}
    return {}


def in_task(kind: str = "SHELL", **task: Any) -> dict[str, str]:
    params = {"script": "true", **task.pop("params", {})}
    return problems(tasks=[{"name": "a", "type": kind, "params": params, **task}])


# -- launch ----------------------------------------------------------------------------------------


def test_what_is_given_counts_before_the_workflow_and_that_before_the_project() -> None:
    specs = parameters(day={"type": "date"}, count=3, free="")
    found = launch(specs, {"count": "9", "team": "x", "free": "y"}, {"day": "2024-01-01"})
    assert found == Launch(
        {"team": "x", "count": "3", "free": "", "day": "2024-01-01"}, {"day": "2024-01-01"}
    )


def test_launch_names_everything_that_is_wrong() -> None:
    specs = parameters(day={"type": "date"}, count={"type": "integer", "default": 3})
    with pytest.raises(ValueError, match=r"typo.*day.*count") as caught:
        launch(specs, {}, {"typo": "1", "count": "many"})
    assert "no such parameter" in str(caught.value)


@pytest.mark.parametrize("value", ["$[yyyyMMdd-1]", "$[nonsense(", "${x} $$[", "$(date)"])
def test_values_given_by_people_are_data(value: str) -> None:
    found = launch(parameters(x=""), {}, {"x": value})
    assert found.parameters["x"] == found.startup["x"]
    assert macros.render("${x}", base=BASE, parameters=found.startup) == value


def test_values_of_schedules_are_definitions_and_checked() -> None:
    specs = parameters(x="")
    for fine in ("$[yyyyMMdd-1]", "$$[plain", "costs $5 ${HOME}", "$(date)"):
        assert launch(specs, {}, {"x": fine}, data=False).startup == {"x": fine}
    with pytest.raises(ValueError, match=r"x: .*write \$\$ for a plain"):
        launch(specs, {}, {"x": "$[nonsense("}, data=False)


def test_typed_parameter_takes_no_placeholder_from_people() -> None:
    specs = parameters(day={"type": "date"})
    with pytest.raises(ValueError, match="is not a valid date"):
        launch(specs, {}, {"day": "$[yyyy-MM-dd]"})
    assert launch(specs, {}, {"day": "$[yyyy-MM-dd]"}, data=False)


@pytest.mark.parametrize("data", [True, False])
def test_secrets_are_refused_in_what_is_given(data: bool) -> None:
    with pytest.raises(ValueError, match="names the secret db"):
        launch(parameters(x=""), {}, {"x": "a ${secret.db}"}, data=data)


def test_value_of_the_project_that_a_default_builds_on_is_kept() -> None:
    specs = parameters(path="${path}/daily", other="x")
    found = launch(specs, {"path": "/data", "other": "y"}, {})
    assert found.parameters == {"path": "${path}/daily", "project.path": "/data", "other": "x"}


def test_definition_of_a_project_is_checked() -> None:
    assert definition_problem("team", "data $[yyyy] ${secret.db}") is None
    assert "reserved" in str(definition_problem("LD_PRELOAD", "x"))
    assert "unknown function" in str(definition_problem("x", "$[nonsense(]"))
    assert "NUL" in str(definition_problem("x", "\0"))


# -- definitions -----------------------------------------------------------------------------------


def test_parameters_of_tasks_are_checked_as_those_of_the_workflow() -> None:
    found = in_task(parameters={"PATH": "x", "day": "$[Q]", "a": "1", "A": "2", "fine": 3})
    assert found.keys() == {f"tasks[0].parameters.{name}" for name in ("PATH", "day", "A")}
    assert "reserved" in found["tasks[0].parameters.PATH"]
    assert "only in case" in found["tasks[0].parameters.A"]
    assert (
        "not a valid parameter name" in in_task(parameters={"a-b": "1"})["tasks[0].parameters.a-b"]
    )


def test_values_of_a_schedule_are_checked() -> None:
    given = {"x": "$[Q]", "typo": "1", "y": "${secret.db}", "fine": "$[yyyy]"}
    found = problems(
        parameters={"x": "", "y": "", "fine": ""},
        schedules=[{"cron": "0 6 * * *", "parameters": given}],
    )
    assert found.keys() == {f"schedules[0].parameters.{name}" for name in ("x", "typo", "y")}
    assert "no such parameter" in found["schedules[0].parameters.typo"]


def test_secrets_may_stand_in_parameters_only_where_they_stay_secret() -> None:
    assert in_task(parameters={"password": "${secret.db}"}) == {}
    assert problems(parameters={"password": "${secret.db}"}) == {}
    script = in_task(params={"script": "echo ${secret.db}"})
    assert "SHOAL_SECRET_db" in script["tasks[0].params.script"]
    argument = in_task(params={"arguments": ["--password", "${secret.db}"]})
    assert "command line" in argument["tasks[0].params.arguments[1]"]
    spark = in_task(
        "SPARK", params={"script": "x ${secret.db}", "conf": {"spark.x": "${secret.y}"}}
    )
    assert spark.keys() == {"tasks[0].params.script", "tasks[0].params.conf.spark.x"}


@pytest.mark.parametrize("name", ["a-b", "", "1x", "a b", "x" * 101])
def test_name_that_no_secret_can_have_is_refused(name: str) -> None:
    found = problems(parameters={"p": f"${{secret.{name}}}"})
    assert "not a name of a secret" in found["parameters.p"]
