"""What reaches a worker: rendered where text is data, untouched where it is a program."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shoal.core.macros.placeholders import InvalidMacro
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.scope import levels
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.master.dispatch.payloads import may_use_secrets, payload
from shoal.master.dispatch.secrets import ProjectSecrets, UnknownSecret
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.vault import Vault, WrongSecretsKey, create_key
from shoal.sql.repositories.definitions.secrets import StoredSecret
from tests.unit.core.decide.driving import spec

LOGICAL = datetime(2024, 2, 29, 23, 30, tzinfo=UTC)


def sent(params: dict[str, Any], parameters: dict[str, str], timezone: str = "UTC") -> pb.Payload:
    """The payload of a one-task run."""
    definition = spec({"a": {"params": params, "timeout": "1m"}}, parameters=parameters)
    attempt = Attempt("a", 2, id=7)
    run = Run(
        3,
        WorkflowPlan.of(definition),
        WorkflowState.RUNNING,
        5,
        {"a": attempt},
        LOGICAL,
        LOGICAL,
        parameters=parameters,
        version=4,
        timezone=timezone,
    )
    return payload(run, attempt, 99)


def test_identity_and_limits_are_in_it() -> None:
    found = sent({"script": "true"}, {})
    assert (found.workflow_instance_id, found.task_instance_id, found.partition) == (3, 7, 5)
    assert (found.version, found.attempt, found.epoch, found.timeout_s) == (4, 2, 99, 60.0)
    assert (found.project, found.workflow, found.task, found.type) == ("default", "w", "a", "SHELL")


def test_values_are_never_pasted_into_programs_but_into_arguments() -> None:
    value = "$(reboot) '\" ${HOME}"
    found = sent({"script": "echo ${word} $[yyyyMMdd]", "arguments": ["${word}"]}, {"word": value})
    params = json.loads(found.params_json)
    assert params == {"script": "echo ${word} 20240229", "arguments": [value]}
    assert found.parameters["word"] == value


def test_dates_are_reckoned_in_the_zone_of_the_run() -> None:
    found = sent({"script": "$[yyyy-MM-dd HH]"}, {"day": "$[yyyyMMdd-1]"}, "Asia/Shanghai")
    assert json.loads(found.params_json)["script"] == "2024-03-01 07"
    assert found.parameters["day"] == "20240229"


def test_what_cannot_be_rendered_is_an_error_that_names_it() -> None:
    with pytest.raises(InvalidMacro, match="nonsense"):
        sent({"script": "true", "arguments": ["${x}"]}, {"x": "$[nonsense(]"})


# -- secrets ---------------------------------------------------------------------------------------


def one_task(tmp_path: Path, **task: Any) -> tuple[Run, ProjectSecrets]:
    """A run of one task in a project with the secrets db and other."""
    create_key(tmp_path / "secrets.key")
    vault = Vault(tmp_path / "secrets.key")
    values = {"db": "hush $[yyyy]", "other": "not used"}
    sealed = {
        name: StoredSecret(vault.seal("default", name, value)) for name, value in values.items()
    }
    definition = spec({"a": {"params": {"script": "true"}, **task}})
    attempts = {"a": Attempt("a", 1, id=7)}
    run = Run(3, WorkflowPlan.of(definition), WorkflowState.RUNNING, 5, attempts, LOGICAL, LOGICAL)
    return run, ProjectSecrets(vault, "default", sealed)


@pytest.mark.parametrize(
    "task",
    [
        {"parameters": {"url": "u:${secret.db}@h"}},
        {"params": {"script": 'echo "$SHOAL_SECRET_db" ${SHOAL_SECRET_db}'}},
    ],
)
def test_task_gets_the_secrets_that_it_names_and_no_others(
    tmp_path: Path, task: dict[str, Any]
) -> None:
    run, secrets = one_task(tmp_path, **task)
    assert may_use_secrets(run.plan.tasks["a"], levels(run, "a"))
    found = payload(run, run.attempts["a"], 1, secrets)
    assert dict(found.secrets) == {"db": "hush $[yyyy]"}
    if "parameters" in task:
        assert found.parameters["url"] == "u:hush $[yyyy]@h"
    assert "hush" not in found.params_json


def test_most_tasks_need_no_secrets(tmp_path: Path) -> None:
    run, _ = one_task(tmp_path, parameters={"x": "${y} secret"})
    assert not may_use_secrets(run.plan.tasks["a"], levels(run, "a"))
    assert not payload(run, run.attempts["a"], 1).secrets


def test_unknown_secret_is_an_error_that_names_it(tmp_path: Path) -> None:
    tasks: tuple[dict[str, Any], ...] = (
        {"parameters": {"x": "${secret.typo}"}},
        {"params": {"script": "$SHOAL_SECRET_typo"}},
    )
    for task in tasks:
        run, secrets = one_task(tmp_path, **task)
        with pytest.raises(UnknownSecret, match="project default has no secret typo; set it with"):
            payload(run, run.attempts["a"], 1, secrets)


def test_secret_of_another_key_is_an_error(tmp_path: Path) -> None:
    run, secrets = one_task(tmp_path, parameters={"x": "${secret.db}"})
    (tmp_path / "secrets.key").unlink()
    create_key(tmp_path / "secrets.key")
    other = ProjectSecrets(Vault(tmp_path / "secrets.key"), "default", secrets._stored)
    with pytest.raises(WrongSecretsKey, match="the secret db of project default"):
        payload(run, run.attempts["a"], 1, other)


# -- timeouts and dates ----------------------------------------------------------------------------


@pytest.mark.parametrize(("action", "expected"), [("fail", 60.0), ("both", 60.0), ("warn", 0.0)])
def test_worker_ends_only_what_shall_fail_at_its_timeout(
    tmp_path: Path, action: str, expected: float
) -> None:
    run, _ = one_task(tmp_path, timeout="1m", timeout_action=action)
    assert payload(run, run.attempts["a"], 1).timeout_s == expected


def test_outputs_of_tasks_upstream_and_own_parameters_are_in_it() -> None:
    definition = spec(
        {
            "a": {},
            "b": {
                "depends_on": ["a"],
                "params": {"script": "true", "arguments": ["${file}", "${rows}"]},
                "parameters": {"file": "/data/${rows}.csv"},
            },
        }
    )
    given = Attempt("a", 1, TaskState.SUCCEEDED, id=1, outputs={"rows": "$[yyyy] 7"})
    attempts = {"a": given, "b": Attempt("b", 1, id=2)}
    run = Run(3, WorkflowPlan.of(definition), WorkflowState.RUNNING, 5, attempts, LOGICAL, LOGICAL)
    found = payload(run, attempts["b"], 1)
    assert json.loads(found.params_json)["arguments"] == ["/data/$[yyyy] 7.csv", "$[yyyy] 7"]
    assert dict(found.parameters) == {"rows": "$[yyyy] 7", "file": "/data/$[yyyy] 7.csv"}


def test_output_is_a_variable_of_its_own_name_only_where_it_is_declared_or_named() -> None:
    tasks = {
        "give": {},
        "take": {
            "depends_on": ["give"],
            "params": {"script": 'wc "$rows"; env["note"]; git fetch # GIT_SSH_COMMANDS'},
            "parameters": {"mine": "${hers}"},
        },
    }
    definition = spec(tasks, parameters={"day": "1"})
    named = ["rows", "note", "mine", "day", "of_project"]
    others = ["GIT_SSH_COMMAND", "http_proxy", "hers"]
    give = Attempt(
        "give", 1, id=1, state=TaskState.SUCCEEDED, outputs=dict.fromkeys(named + others, "x")
    )
    take = Attempt("take", 1, id=2)
    attempts = {"give": give, "take": take}
    run = Run(
        3,
        WorkflowPlan.of(definition),
        WorkflowState.RUNNING,
        5,
        attempts,
        LOGICAL,
        LOGICAL,
        parameters={"day": "1", "of_project": "y"},
    )
    run.givers = {"give"}
    found = payload(run, take, 99)
    assert found.parameters.keys() == {*named, *others}
    assert list(found.undeclared) == sorted(others)


def test_log_sets_outputs_only_where_the_definition_says_so() -> None:
    assert not sent({"script": "true"}, {}).outputs_from_log
    definition = spec({"a": {"outputs_from_log": True}})
    attempt = Attempt("a", 1, id=7)
    run = Run(
        3, WorkflowPlan.of(definition), WorkflowState.RUNNING, 5, {"a": attempt}, LOGICAL, LOGICAL
    )
    assert payload(run, attempt, 99).outputs_from_log
