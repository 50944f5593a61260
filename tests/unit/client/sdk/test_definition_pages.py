"""The page about definitions names every field with its default; examples in all pages work."""

import re
from pathlib import Path

import pytest

from shoal.core.checks.workflow import DefinitionProblem
from shoal.core.definition.model import ScheduleSpec, TaskSpec, WorkflowSpec
from shoal.runtime.documents.yaml_file import read_yaml
from shoal.runtime.plugins import check_definition, load_task_type, task_type_names

DOCS = Path(__file__).parents[4] / "docs"
PAGE = (DOCS / "definitions.md").read_text()
_TABLE = re.compile(r"^\| `(\w+)` \|\s*([^|]*?)\s*\|", re.MULTILINE)
_YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("title", "model"), [("Workflow", WorkflowSpec), ("Task", TaskSpec), ("Schedule", ScheduleSpec)]
)
def test_every_field_has_its_line_and_its_default(
    title: str, model: type[WorkflowSpec | TaskSpec | ScheduleSpec]
) -> None:
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    lines = dict(_TABLE.findall(section))
    assert lines.keys() == model.model_fields.keys()
    for name, field in model.model_fields.items():
        said = lines[name].strip().strip("`")
        assert (said == "required") == field.is_required(), name
        default = field.get_default(call_default_factory=True, validated_data={})
        if isinstance(default, bool):
            assert said == str(default).lower(), name
        elif isinstance(default, int | float):
            assert said == getattr(default, "name", f"{default:g}"), name
        elif isinstance(default, str) and default:
            assert said == default, name


def test_every_task_type_of_the_master_is_described() -> None:
    section = PAGE.split("## Tasks that the master runs\n")[1]
    for name in task_type_names():
        if load_task_type(name).__module__.startswith("shoal.core.logic"):
            [line] = re.findall(rf"^\| {name} \| (.*) \|$", section, re.MULTILINE)
            for field, info in load_task_type(name).Params.model_fields.items():
                inherited = name == "MAP" and f"`{field}`" not in line
                assert inherited or f"`{info.alias or field}`" in line, (name, field)


def test_definitions_on_the_pages_can_be_published() -> None:
    for page in sorted(DOCS.rglob("*.md")):
        for text in _YAML.findall(page.read_text()):
            problems: list[DefinitionProblem] = []
            for source in read_yaml(text, page.name, problems):
                if isinstance(source.value, dict) and "tasks" in source.value:
                    check_definition(source.value)
            assert not problems, page
