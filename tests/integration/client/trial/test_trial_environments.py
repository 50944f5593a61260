"""``shoal test`` in the environment that a task names, from a file."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shoal.client.sources.object_files import read_environment
from shoal.client.trial.execution import Tried, try_task
from shoal.client.trial.inputs import Given, NoEnvironmentGiven, NotForTrial, TaskInputs
from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.definition.environments import EnvironmentSpec
from shoal.core.runs.run import WorkflowPlan
from tests.unit.core.decide.driving import spec

NOW = datetime(2026, 11, 21, 6, tzinfo=UTC)


def inputs(
    environment: EnvironmentSpec | None, named: str | None = "ml", *, none: bool = False
) -> TaskInputs:
    task = {"params": {"script": 'echo "$A $B"; exit ${code:-0}'}, "environment": named}
    plan = WorkflowPlan.of(spec({"a": task}))
    variables = {"PATH": "/usr/bin:/bin", "B": "not inherited"}
    given = Given({}, variables, environment=environment, no_environment=none)
    return TaskInputs(plan, "a", NOW, given)


async def ended(tried: TaskInputs) -> tuple[Tried, str]:
    parts: list[bytes] = []
    result = await try_task(tried, parts.append)
    return result, b"".join(parts).decode()


async def test_variables_and_setup_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "ml.yaml"
    file.write_text("variables: {A: 010}\nsetup: |\n  B=2\n  export B\n")
    assert await ended(inputs(read_environment(file))) == (Tried(0), "010 2\n")


async def test_setup_that_fails_is_named() -> None:
    result, _ = await ended(inputs(EnvironmentSpec(setup="exit 3")))
    assert (result.exit_code, result.reason) == (3, "the setup of environment ml@0 failed")
    result, _ = await ended(inputs(EnvironmentSpec(setup="exec true")))
    assert result.reason == "the setup of environment ml@0 failed: it has become another program"
    result, _ = await ended(inputs(EnvironmentSpec(python="/no/such")))
    assert "environment ml: this worker has no /no/such" in result.reason


async def test_environment_that_is_not_given_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(NoEnvironmentGiven, match=r"shoal environment show ml --json >ml\.json"):
        inputs(None)
    assert await ended(inputs(None, none=True)) == (Tried(0), " \n")
    assert await ended(inputs(None, named=None)) == (Tried(0), " \n")
    with pytest.raises(NotForTrial, match="leave out --environment-file"):
        inputs(EnvironmentSpec(python=sys.executable), named=None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "variable: {A: 1}",
            "ml.yaml:1: variable: is not a known field; did you mean 'variables'?",
        ),
        ("variables:\n  A: 1\n  SHOAL_X: 1", "ml.yaml:3: variables.SHOAL_X: is set by Shoal"),
        ("python: venv", "ml.yaml:1: python: must be an absolute path"),
        ("- a", "is not an environment"),
        ("a: [", "ml.yaml:"),
        ("", "is not an environment"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "ml.yaml"
    file.write_text(text)
    with pytest.raises(InvalidDefinition) as refused:
        read_environment(file)
    assert said in str(refused.value)


def test_what_the_command_line_shows_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "ml.json"
    file.write_text(
        '{"name": "ml", "description": "", "variables": {"A": "010"}, "python": "/x", "setup": '
        '"a\\nb", "worker_groups": ["gpu"], "version": 3, "created_at": "x", "updated_at": "x", '
        '"workflows": []}'
    )
    assert read_environment(file) == EnvironmentSpec(
        variables={"A": "010"}, python="/x", setup="a\nb", worker_groups=("gpu",)
    )


def test_file_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match="cannot be read: No such file"):
        read_environment(tmp_path / "none.yaml")


async def test_a_trial_without_publications_reads_no_settings_of_a_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOAL_PARTITIONS", "many")  # refused by every process of a cluster
    assert await ended(inputs(None, named=None)) == (Tried(0), " \n")
