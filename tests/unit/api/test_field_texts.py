"""Fields of task types and data sources are described in Chinese too: the UI looks the text up."""

import json
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from shoal.core.data_sources.kind import options_schema
from shoal.core.definition.model import HEAD_TEXTS, WorkflowSpec
from shoal.runtime.source_kinds import load_source_kind, source_kinds

TEXTS = Path(__file__).parents[3] / "ui" / "src" / "shared" / "i18n" / "fields.zh.ts"
_LINE = re.compile(r"^  '((?:[^'\\]|\\.)*)': '((?:[^'\\]|\\.)*)',$", re.MULTILINE)


def _descriptions(schema: dict[str, Any]) -> Iterator[str]:
    for one in schema.get("properties", {}).values():
        if "description" in one:
            yield one["description"]
    for part in schema.get("$defs", {}).values():
        yield from _descriptions(part)


def _told() -> set[str]:
    """What the built-in task types and kinds of data sources say of their fields."""
    types = [
        one for one in entry_points(group="shoal.task_types") if one.value.startswith("shoal.")
    ]
    assert types
    told = {text for one in types for text in _descriptions(one.load().Params.model_json_schema())}
    for kind in map(load_source_kind, source_kinds()):
        told.update(_descriptions(options_schema(kind.Options)))
        told |= {kind.database_is, kind.credential}
    return told | _of_definitions()


def _of_definitions() -> set[str]:
    """What forms show of workflows, tasks and schedules: descriptions, and titles of the head."""
    schema = WorkflowSpec.model_json_schema()
    titles = {schema["properties"][name]["title"] for name in HEAD_TEXTS} - {"Description"}
    specs = (schema, schema["$defs"]["TaskSpec"], schema["$defs"]["ScheduleSpec"])
    return titles.union(*(_descriptions({"properties": one["properties"]}) for one in specs))


def test_each_description_of_a_field_is_translated_and_no_other() -> None:
    found = {
        json.loads('"' + english.replace("\\'", "'").replace('"', '\\"') + '"'): chinese
        for english, chinese in _LINE.findall(TEXTS.read_text(encoding="utf-8"))
    }
    told = _told()
    assert sorted(told - set(found)) == []
    assert sorted(set(found) - told) == []
    assert all(re.search(r"[\u4e00-\u9fff]", text) for text in found.values())
