"""The page about HTTP tasks names every field with its default, and its examples can be saved."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from shoal.worker.settings import WorkerSettings
from shoal.worker.types.http.disclosure import PREVIEW
from shoal.worker.types.http.kind import AnswerChecks, Auth, Body, HttpParams, Poll
from shoal.worker.types.http.values import AnswerPart

PAGE = (Path(__file__).parents[4] / "docs" / "tasks" / "http.md").read_text()
_TABLE = re.compile(r"^\| `(\w+)` \|\s*([^|]*?)\s*\|", re.MULTILINE)


def table_below(words: str) -> dict[str, str]:
    """Return the first table below these words: fields with what is said of their defaults."""
    below = PAGE.split(words, 1)[1]
    table = below[below.index("| Field |") :].split("\n\n")[0]
    return {name: said.strip("`") for name, said in _TABLE.findall(table)}


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ("## Fields\n", HttpParams),
        ("\n`auth`:\n", Auth),
        ("\n`body`:\n", Body),
        ("## Checks\n", AnswerChecks),
        ("## Polling\n", Poll),
    ],
)
def test_every_field_has_its_line_and_its_default(words: str, model: type[BaseModel]) -> None:
    lines = table_below(words)
    assert lines.keys() == {info.alias or name for name, info in model.model_fields.items()}
    for name, info in model.model_fields.items():
        said = lines[info.alias or name]
        assert (said == "required") == info.is_required(), name
        default = info.get_default(call_default_factory=True, validated_data={})
        if isinstance(default, bool):
            assert said == str(default).lower(), name
        elif isinstance(default, int | float):
            assert said == f"{default:g}", name
        elif isinstance(default, str):
            assert said == default, name
        elif not info.is_required():
            assert said == "", name


def test_values_and_settings_are_all_on_the_page() -> None:
    for kind in set(AnswerPart) - {AnswerPart.HEADER, AnswerPart.JSON}:
        assert f"`{kind}`" in PAGE, kind
    for name in WorkerSettings().for_task_types():
        if not name.startswith("http_"):
            continue
        assert f"| `{name}` |" in PAGE, name
    assert f"{PREVIEW:,} characters" in PAGE
