"""What reaches a worker: rendered where text is data, untouched where it is a program."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.core.macros import InvalidMacro
from shoal.core.run import Attempt, Plan, Run
from shoal.core.states import WorkflowState
from shoal.master.payloads import payload
from shoal.proto import shoal_pb2 as pb
from tests.unit.core.driving import spec

LOGICAL = datetime(2024, 2, 29, 23, 30, tzinfo=UTC)


def sent(params: dict[str, Any], parameters: dict[str, str], timezone: str = "UTC") -> pb.Payload:
    """The payload of a one-task run."""
    definition = spec({"a": {"params": params, "timeout": "1m"}}, parameters=parameters)
    attempt = Attempt("a", 2, id=7)
    run = Run(
        3,
        Plan.of(definition),
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
