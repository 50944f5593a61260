"""Options of data sources as they are written on the command line: by the option's schema."""

from typing import Any

import pytest
import typer

from shoal.client.cli.workflows.data_sources import _options, option_value

TYPES = {name: {"type": name} for name in ("boolean", "integer", "number", "string")}
SCHEMA = {"properties": TYPES | {"maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        *(("boolean", text, True) for text in ("true", "True", "yes", "on", "1")),
        *(("boolean", text, False) for text in ("false", "FALSE", "no", "off", "0")),
        ("boolean", "10", "10"),
        ("boolean", "${flag}", "${flag}"),
        ("integer", "010", 10),
        ("integer", "-3", -3),
        ("integer", "2.5", "2.5"),
        ("integer", "nan", "nan"),
        ("integer", "true", "true"),
        ("number", "2.5", 2.5),
        ("number", "1e3", 1000.0),
        ("number", "soon", "soon"),
        ("maybe", "7", 7),
        ("string", "yes", "yes"),
        ("string", "10", "10"),
        ("string", "nan", "nan"),
        ("unknown", "1", "1"),
    ],
)
def test_a_text_becomes_the_value_that_the_schema_asks_for(
    name: str, text: str, value: Any
) -> None:
    found = option_value(SCHEMA["properties"].get(name, {}), text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-Infinity", "1e999", "9" * 400])
def test_a_number_that_is_not_finite_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"--option number=.{1,60}: not a finite number"):
        dict(_options(SCHEMA, [f"number={text}"]))
