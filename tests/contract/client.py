"""The client that follows from the description: its types, and a method for each operation."""

import builtins
import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shoal.api.pages.openapi import resolve

ROOT = Path(__file__).parents[2]
BINARY = "application/octet-stream"
JSON = "application/json"
_MADE = '"""{}\n\nMade from ``docs/openapi.json`` by ``make contract``; not for editing.\n"""\n\n'
_ROOM = "shoal.client.rest.operations.generated"
# Method and headers say whether a request may be sent twice, but for these.
_REPEATED = {
    "changePassword": False,  # the first try has changed what the second one has to name
    **dict.fromkeys(
        (
            *("previewAlert", "previewExpression", "previewStart"),
            *("planWorkflow", "validateWorkflow", "testDataSource", "testSecret"),
            *("archiveWorkflow", "unarchiveWorkflow", "restoreVersion", "acknowledgeAlert"),
            *("pauseSchedule", "resumeSchedule", "createBulkSchedules"),
            *("changeGroup", "changeLabels", "changeUser", "pruneAudit", "rotateSecretsKeys"),
        ),
        True,
    ),
}
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def types(description: dict[str, Any]) -> str:
    """Return the module of types, by datamodel-code-generator."""
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "openapi.json"), Path(folder, "types.py")
        source.write_text(json.dumps(_open(deepcopy(description))))
        options = {
            "--input": source,
            "--input-file-type": "openapi",
            "--output": target,
            "--output-model-type": "typing.TypedDict",
            "--target-python-version": "3.11",
            "--enum-field-as-literal": "all",
        }
        flags = ["--use-schema-description", "--disable-timestamp", "--use-union-operator"]
        flags += ["--use-standard-collections", "--disable-future-imports"]
        named = [str(part) for option in options.items() for part in option]
        _run("datamodel_code_generator", *named, *flags)
        found = target.read_text()
    # The generator's own heading names a temporary file.
    heading = _MADE.format("The JSON that the API takes and answers, as types.")
    return _formatted("types.py", heading + re.sub(r"\A(#.*\n)+", "", found))


def _open(value: Any) -> Any:
    """Return a description whose objects may have more fields: newer servers add some."""
    if isinstance(value, dict):
        value.pop("discriminator", None)
        value.pop("propertyNames", None)  # counts by state are counts by text
        if value.get("additionalProperties") is False:
            del value["additionalProperties"]
        for inner in value.values():
            _open(inner)
    elif isinstance(value, list):
        for inner in value:
            _open(inner)
    return value


def calls(description: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield for each tag the name and the text of a module that says what its operations send."""
    imports = (
        "from __future__ import annotations\n\n"
        "from collections.abc import Iterable, Sequence\nfrom datetime import date, datetime\n"
        "from typing import TYPE_CHECKING, Any, Literal\nfrom uuid import uuid4\n\n"
        "from shoal.client.rest.operations.call import Call, StreamCall\n"
        "from shoal.client.rest.operations.call import part, parts\n\n"
        f"if TYPE_CHECKING:\n    from {_ROOM} import types\n\n\n"
    )
    for tag, found in _by_tag(description).items():
        heading = _MADE.format(f"What is sent for each operation about {tag}.")
        functions = [_function(description, *one) for one in found]
        path = f"calls/{_module(tag)}.py"
        yield _module(tag), _formatted(path, heading + imports + "\n\n".join(functions))


def calls_room() -> str:
    """Return what the package of the calls says of itself."""
    return _MADE.format("What is sent for each operation, a module for each tag of the API.")[:-1]


def operations(description: dict[str, Any]) -> str:
    """Return the module with a method for each operation, in two classes."""
    modules = [_module(tag) for tag in _by_tag(description)]
    homes = {
        operation["operationId"]: _module(tag)
        for tag, found in _by_tag(description).items()
        for _, _, operation in found
    }
    imports = (
        "from typing import TYPE_CHECKING\n\n"
        "from shoal.client.rest.operations.call import (\n    AsyncSender,\n    CallSender,\n"
        "    calls_of,\n    later,\n    now,\n    stream_later,\n    stream_now,\n)\n\n"
        f"if TYPE_CHECKING:\n    from {_ROOM}.calls import (\n        {', '.join(modules)}\n    )\n"
        "else:\n"
        + "".join(f'    {name} = calls_of("{_ROOM}.calls.{name}")\n' for name in modules)
        + "\n\n"
    )
    names = [
        (homes[operation["operationId"]], snake(operation["operationId"]), _is_stream(operation))
        for _, _, operation in _operations(description)
    ]
    classes = "".join(
        f'class {class_name}:\n    """A method for each operation{how}."""\n\n'
        f"    def __init__(self, sender: {sender}) -> None:\n        self.sender = sender\n\n"
        + "".join(
            f"    {name} = {stream if is_stream else plain}({home}.{name})\n"
            for home, name, is_stream in names
        )
        + "\n\n"
        for class_name, how, sender, plain, stream in (
            ("Operations", "", "CallSender", "now", "stream_now"),
            ("AsyncOperations", ", to be awaited", "AsyncSender", "later", "stream_later"),
        )
    )
    heading = _MADE.format("Every operation as a method.")
    return _formatted("operations.py", heading + imports + classes)


def snake(name: str) -> str:
    """Return ``listProjects`` as ``list_projects``."""
    return re.sub(r"([A-Z])", r"_\1", name).lower()


def _operations(description: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    found = [
        (path, method, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    yield from sorted(found, key=lambda one: str(one[2]["operationId"]))


def _by_tag(description: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for one in _operations(description):
        found.setdefault(one[2]["tags"][0], []).append(one)
    return dict(sorted(found.items()))


def _module(tag: str) -> str:
    return re.sub(r"\W", "_", tag).lower()


def _function(
    description: dict[str, Any], path: str, method: str, operation: dict[str, Any]
) -> str:
    parameters = operation.get("parameters", [])
    by_place = {
        place: [one for one in parameters if one["in"] == place]
        for place in ("path", "query", "header")
    }
    names = re.findall(r"{(\w+)}", path)
    in_path = sorted(by_place["path"], key=lambda one: names.index(one["name"]))
    required = [f"{_argument(one)}: {_type(description, one['schema'])}" for one in in_path]
    body, content = _body(operation)
    if body is not None:
        required.append(f"body: {_type(description, body)}")
    if content:
        required.append("content: bytes | Iterable[bytes]")
    optional = [
        f"{_argument(one)}: {_optional(_given_type(description, one['schema']))} = None"
        for one in (*by_place["query"], *by_place["header"])
    ]
    signature = ", ".join([*required, *(["*", *optional] if optional else [])])
    text = operation["description"].replace("\\", "\\\\")
    lines = [f'    """{operation["summary"]}.', "", *_indented(text), '    """']
    arguments = [f'"{method.upper()}"', _path(path)]
    if by_place["query"]:
        arguments.append(f"query={{{_pairs(by_place['query'])}}}")
    if by_place["header"]:
        name = "all_headers" if _is_stream(operation) else "headers"
        arguments.append(f"{name}={{{_pairs(by_place['header'])}}}")
    if body is not None:
        arguments.append("body=body")
    if content:
        arguments.append("content=content")
    if operation["operationId"] in _REPEATED:
        arguments.append(f"repeat={_REPEATED[operation['operationId']]}")
    answer = _answer(description, operation)
    returned = "StreamCall" if _is_stream(operation) else f"Call[{answer}]"
    if _is_stream(operation):
        arguments = arguments[1:]
    name = snake(operation["operationId"])
    documentation = "\n".join(lines)
    return (
        f"def {name}({signature}) -> {returned}:\n{documentation}\n"
        f"    return {returned.partition('[')[0]}({', '.join(arguments)})\n"
    )


def _indented(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"    {line}" if line else ""


def _argument(parameter: dict[str, Any]) -> str:
    name = re.sub(r"\W", "_", parameter["name"]).lower()
    return f"{name}_" if keyword.iskeyword(name) or hasattr(builtins, name) else name


def _pairs(parameters: list[dict[str, Any]]) -> str:
    return ", ".join(f'"{one["name"]}": {_value(one)}' for one in parameters)


def _value(parameter: dict[str, Any]) -> str:
    name = _argument(parameter)
    # So that a command is stored once, however often it had to be sent.
    return f"{name} or str(uuid4())" if name == "idempotency_key" else name


def _path(path: str) -> str:
    below = path.removeprefix("/api/v1")
    # A path of a file has several parts.
    made = re.sub(r"{(\w+)}", r"{part(str(\1))}", below).replace(
        "{part(str(path))}", "{parts(path)}"
    )
    return f'f"{made}"' if "{" in below else f'"{below}"'


def _body(operation: dict[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    content = operation.get("requestBody", {}).get("content", {})
    return content.get(JSON, {}).get("schema"), BINARY in content


def _is_stream(operation: dict[str, Any]) -> bool:
    content = operation["responses"].get("200", {}).get("content", {})
    return bool(content) and JSON not in content


def _answer(description: dict[str, Any], operation: dict[str, Any]) -> str:
    for status in ("200", "201", "202"):
        content = operation["responses"].get(status, {}).get("content", {})
        if JSON in content:
            return _type(description, content[JSON]["schema"])
    return "None"


def _optional(kind: str) -> str:
    return kind if "None" in kind.split(" | ") else f"{kind} | None"


def _given_type(description: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the annotation of a parameter of a query, which may be a moment or a day."""
    alternatives = schema.get("anyOf", [schema])
    formats = {one.get("format") for one in alternatives}
    kind = _type(description, schema)
    moments = [
        name for name, form in (("datetime", "date-time"), ("date", "date")) if form in formats
    ]
    return " | ".join([kind, *moments])


def _type(description: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return a schema as an annotation; named ones are in the module of types."""
    if "$ref" in schema:
        found = resolve(description, schema)
        if "properties" in found or "oneOf" in found or "enum" in found:
            return f"types.{schema['$ref'].rpartition('/')[2]}"
        return _type(description, found)
    if "enum" in schema:
        return f"Literal[{', '.join(repr(one) for one in schema['enum'])}]"
    if alternatives := schema.get("anyOf"):
        return " | ".join(dict.fromkeys(_type(description, one) for one in alternatives))
    match schema.get("type"):
        case "array":
            return f"Sequence[{_type(description, schema['items'])}]"
        case "null":
            return "None"
        case str() as plain if plain in _PLAIN:
            return _PLAIN[plain]
        case _:
            return "dict[str, Any]"


def _formatted(name: str, text: str) -> str:
    path = f"client/shoal/client/rest/operations/generated/{name}"
    sorted_ = _run(
        "ruff", "check", "--fix-only", "--quiet", "--stdin-filename", path, "-", text=text
    )
    return _run("ruff", "format", "--quiet", "--stdin-filename", path, "-", text=sorted_)


def _run(module: str, *arguments: str, text: str | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        raise RuntimeError(f"{module} fails: {done.stderr}")
    return done.stdout
