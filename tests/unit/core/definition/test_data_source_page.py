"""The page about data sources says what the code takes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shoal.core.data_sources.kind import FieldNeed, options_schema
from shoal.runtime.source_kinds import load_source_kind, source_kinds

PAGE = Path(__file__).parents[4] / "docs" / "data-sources.md"
_TYPES = {"integer": "whole number", "boolean": "true or false", "string": "text"}


def _need(need: FieldNeed, what: str = "yes") -> str:
    return {FieldNeed.REQUIRED: what, FieldNeed.OPTIONAL: f"{what}, or none", FieldNeed.NONE: "–"}[
        need
    ]


def kinds() -> Iterator[str]:
    yield "| `kind` | | `host` | default port | `database` | `user` | password |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name in source_kinds():
        info = load_source_kind(name)
        cells = (
            f"`{name}`",
            info.title,
            _need(info.host),
            str(info.port or "–"),
            _need(info.database, info.database_is),
            _need(info.user),
            _need(info.password, info.credential),
        )
        yield f"| {' | '.join(cells)} |"


def options() -> Iterator[str]:
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for kind in source_kinds():
        for name, schema in options_schema(load_source_kind(kind).Options)["properties"].items():
            default = schema.get("default")
            shown = "–" if default is None else f"`{str(default).lower()}`"
            line = (f"`{name}`", _type(schema), shown, schema["description"])
            found.setdefault(line, []).append(f"`{kind}`")
    yield "| Option | Value | Default | Kinds | Meaning |"
    yield "| --- | --- | --- | --- | --- |"
    for (name, value, default, meaning), where in found.items():
        yield f"| {name} | {value} | {default} | {', '.join(where)} | {meaning} |"


def _type(schema: dict[str, Any]) -> str:
    form = next(one for one in schema.get("anyOf", [schema]) if one.get("type") != "null")
    if "enum" in form:
        return ", ".join(f"`{one}`" for one in form["enum"])
    bounds = [str(form[bound]) for bound in ("minimum", "maximum") if bound in form]
    return " ".join([_TYPES[form["type"]], " to ".join(bounds)]).strip()


def test_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in (("kinds", kinds()), ("options", options())):
        table = f"<!-- {name} -->\n" + "\n".join(lines) + f"\n<!-- /{name} -->"
        before, found, rest = text.partition(f"<!-- {name} -->")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        assert found
        assert end
        text = before + table + after
    if os.environ.get("SHOAL_UPDATE_DOCS"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
