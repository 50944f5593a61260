"""What callers of an API rely on, as lines of text, and which changes of it break them.

A promise may be added and not taken away: an operation and its id, a parameter, a field or value
that is accepted, a field of an answer and its type. A demand (``!``) may be taken away and not be
added to what was there: a parameter or field that has to be given.

Done by hand: what compares descriptions (oasdiff) is not a Python package, and says nothing of
operation ids.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from shoal.api.pages.openapi import resolve

_DEMAND = "!"


def promises_of(description: dict[str, Any]) -> list[str]:
    """Return all lines about a description, sorted."""
    return sorted(set(_lines(description)))


def broken(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Return what of ``before`` callers cannot rely on any more, as sentences."""
    old, new = set(before), set(after)
    owners = {_owner(line) for line in old}
    gone = sorted(line for line in old - new if _DEMAND not in line.split())
    asked = sorted(line for line in new - old if _DEMAND in line.split() and _owner(line) in owners)
    return [f"is gone: {line}" for line in gone] + [f"is asked for now: {line}" for line in asked]


def _owner(line: str) -> str:
    """Return the operation or schema that a line is about."""
    return line.split()[0].partition(".")[0]


def _codes(description: dict[str, Any]) -> Iterator[str]:
    """What is said with codes goes on being said with them: clients have words for each."""
    for value in description["components"]["schemas"].get("Code", {}).get("enum", ()):
        yield f"Code says {value}"


def _lines(description: dict[str, Any]) -> Iterator[str]:
    yield from _codes(description)
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            yield from _of_operation(description, path, method.upper(), operation)


def _of_operation(
    description: dict[str, Any], path: str, method: str, operation: dict[str, Any]
) -> Iterator[str]:
    name = operation["operationId"]
    yield f"{name} is {method} {path}"
    for parameter in operation.get("parameters", ()):
        what = f"{name} takes {parameter['in']} {parameter['name']}"
        yield f"{what} {_type(description, parameter['schema'])}"
        if parameter.get("required"):
            yield f"{name} {_DEMAND} {parameter['in']} {parameter['name']}"
        for value in _values(description, parameter["schema"]):
            yield f"{what} = {value}"
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"{name} takes {media} {_type(description, content['schema'])}"
        yield from _fields(description, content["schema"], "takes", set())
    for status, given in operation["responses"].items():
        if status.startswith("2"):
            yield f"{name} answers {status}"
            for media, content in resolve(description, given).get("content", {}).items():
                schema = content.get("schema", {})
                yield f"{name} answers {media} {_type(description, schema)}"
                yield from _fields(description, schema, "answers", set())


def _fields(
    description: dict[str, Any], schema: dict[str, Any], verb: str, seen: set[str]
) -> Iterator[str]:
    """Yield the lines about the named schemas that one leads to."""
    for inner in (*_alternatives(schema), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from _fields(description, inner, verb, seen)
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if not name or name in seen:
        return
    seen.add(name)
    found = resolve(description, schema)
    for field, inner in found.get("properties", {}).items():
        what = f"{name}.{field} {verb}"
        yield f"{what} {_type(description, inner)}"
        if verb == "takes":
            for value in _values(description, inner):
                yield f"{what} = {value}"
            if field in found.get("required", ()):
                yield f"{name}.{field} {_DEMAND}"
        elif field in found.get("required", ()):
            yield f"{what} always"
        yield from _fields(description, inner, verb, seen)
    yield from _fields(description, found, verb, seen)


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for key in ("anyOf", "oneOf", "allOf"):
        found += schema.get(key, ())
    return found


def _type(description: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the type in words: named schemas by name, as those have lines of their own."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name and "properties" in resolve(description, schema):
        return name
    schema = resolve(description, schema)
    if "type" in schema:
        kind = str(schema["type"])
        items = schema.get("items")
        return f"{kind} of {_type(description, items)}" if items else kind
    inner = sorted({_type(description, one) for one in _alternatives(schema)})
    return " or ".join(inner) or "anything"


def _values(description: dict[str, Any], schema: dict[str, Any]) -> Iterator[str]:
    schema = resolve(description, schema)
    yield from (str(value) for value in schema.get("enum", ()))
    if "const" in schema:
        yield str(schema["const"])
    for inner in (*_alternatives(schema), *([schema["items"]] if "items" in schema else ())):
        yield from _values(description, inner)
