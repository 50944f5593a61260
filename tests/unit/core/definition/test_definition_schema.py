"""The schema of definitions says what its fields name, so that forms and editors can offer it."""

from collections.abc import Iterator
from typing import Any

from shoal.core.definition.model import WorkflowSpec


def test_fields_that_name_something_say_what() -> None:
    schema = WorkflowSpec.model_json_schema()
    models = {**schema["$defs"], "WorkflowSpec": schema}
    found = {
        f"{model}.{name}": kind
        for model in ("WorkflowSpec", "TaskSpec", "ScheduleSpec")
        for name, field in models[model]["properties"].items()
        for kind in references(field)
    }
    assert found == {
        "WorkflowSpec.timezone": "zone",
        "WorkflowSpec.environment": "environment",
        "TaskSpec.worker_group": "worker-group",
        "TaskSpec.environment": "environment",
        "TaskSpec.concurrency_group": "concurrency-group",
        "TaskSpec.resources": "resource",
        "ScheduleSpec.timezone": "zone",
        "ScheduleSpec.calendar": "calendar",
    }


def references(field: Any) -> Iterator[str]:
    """Yield what a field names, itself or as a choice or an item of it."""
    if isinstance(field, dict):
        if "x-ref" in field:
            yield field["x-ref"]
        for inner in (*field.get("anyOf", ()), field.get("items")):
            yield from references(inner)
