"""The schema of definitions says what its fields name, so that forms and editors can offer it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shoal.core.definition.model import WorkflowSpec

FORMS = Path(__file__).parents[4] / "ui/src/definition/fields.ts"
OWN_CONTROL = {"ScheduleSpec.timezone"}  # beside the table of the form's fields


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
    tables = re.split(r"^const (TASK|WORKFLOW|SCHEDULE):", FORMS.read_text("utf-8"), flags=re.M)
    shown = {
        f"{table.capitalize()}Spec.{name}": one or other
        for table, text in zip(tables[1::2], tables[2::2], strict=True)
        for name, one, other in re.findall(
            r"^  (\w+): .*?(?:named\('([a-z-]+)'\)|ref: \{ to: '([a-z-]+)' \}).*$", text, re.M
        )
    }
    assert shown == {name: kind for name, kind in found.items() if name not in OWN_CONTROL}


def references(field: Any) -> Iterator[str]:
    """Yield what a field names, itself or as a choice or an item of it."""
    if isinstance(field, dict):
        if "x-ref" in field:
            yield field["x-ref"]
        for inner in (*field.get("anyOf", ()), field.get("items")):
            yield from references(inner)
