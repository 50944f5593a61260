"""What a FLINK task accepts, and that the page of the type says so."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from shoal.core.task_types import CommandLine, SourceName, fields_marked
from shoal.worker.types.flink.kind import FlinkParams

PAGE = Path(__file__).parents[4] / "docs" / "tasks" / "flink.md"


def params(**fields: Any) -> FlinkParams:
    return FlinkParams.model_validate({"data_source": "flows", "jar": "/jobs/j.jar", **fields})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"data_source": ""}, "at least 1"),
        ({"jar": " "}, "is empty"),
        ({"jar": "a\nb"}, "control characters"),
        ({"main_class": "a b"}, "pattern"),
        ({"parallelism": 0}, "greater than or equal to 1"),
        ({"savepoint": "savepoint-1"}, "path or URL that the cluster can reach"),
        ({"savepoint_folder": "s3://bucket"}, "is for cancel: stop_with_savepoint"),
        ({"allow_non_restored_state": True}, "is for a savepoint"),
        ({"resume": True}, "resume is for cancel: stop_with_savepoint"),
        ({"cancel": "kill"}, "'stop_with_savepoint'"),
        ({"wait": "ever"}, "'running'"),
        ({"conf": {"Nonsense!": "1"}}, "not a Flink setting"),
        ({"conf": {"parallelism.default": "3"}}, "use the field 'parallelism'"),
        ({"conf": {"execution.state-recovery.path": "/x"}}, "use the field 'savepoint'"),
        ({"conf": {"pipeline.fixed-job-id": "0"}}, "cannot be set by a task"),
        ({"conf": {"$internal.pipeline.job-id": "0"}}, "not a Flink setting"),
        ({"conf": {"pipeline.jars": "file:///etc/x.jar"}}, "cannot be set by a task"),
        ({"conf": {"pipeline.classpaths": "http://evil/x.jar"}}, "cannot be set by a task"),
        ({"conf": {"pipeline.cached-files": "name:x,path:/etc/shadow"}}, "cannot be set"),
        ({"conf": {"execution.target": "local"}}, "cannot be set by a task"),
        ({"conf": {"rest.address": "elsewhere"}}, "cannot be set by a task"),
        ({"conf": {"env.java.opts": "-agentlib:x"}}, "cannot be set by a task"),
        ({"conf": {"state.backend.type": "a\nb"}}, "control characters"),
        ({"script": "x"}, "Extra inputs"),
    ],
)
def test_what_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        params(**fields)


@pytest.mark.parametrize(
    "key",
    [
        "execution.runtime-mode",
        "execution.checkpointing.interval",
        "restart-strategy.type",
        "restart-strategy.fixed-delay.attempts",
        "state.backend.type",
        "table.exec.mini-batch.enabled",
        "pipeline.name",
        "pipeline.max-parallelism",
        "execution.state-recovery.claim-mode",
    ],
)
def test_how_a_job_runs_may_be_set(key: str) -> None:
    assert params(conf={key: "x"}).conf == {key: "x"}


def test_placeholders_are_judged_when_they_are_rendered() -> None:
    text = "${day}"
    fields = {"jar": text, "main_class": text, "savepoint": text, "conf": {"pipeline.name": text}}
    assert params(**fields).savepoint == text


def test_what_everybody_sees_in_flink_takes_no_secrets() -> None:
    marked = {"arguments", "conf", "jar", "main_class", "savepoint", "savepoint_folder"}
    assert fields_marked(FlinkParams, CommandLine) == marked
    assert fields_marked(FlinkParams, SourceName) == {"data_source"}


def test_page_has_every_field_and_its_default() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, field in FlinkParams.model_fields.items():
        default = "required" if field.is_required() else "–"
        if isinstance(field.default, str) and field.default:
            default = f"`{field.default}`"
        assert f"| `{name}` | {default} |" in page, name
