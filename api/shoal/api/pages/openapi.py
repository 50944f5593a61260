"""The OpenAPI description: what FastAPI derives, and what it cannot derive."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from shoal.api.endpoints.preconditions import ETAG
from shoal.api.schemas import commands
from shoal.api.web.problems import MEDIA_TYPE, Problem, ProblemField, StaleProblem
from shoal.core.definition.model import WorkflowSpec

# Of each operation a request and its answer: `make examples` records them.
RECORDED = Path(__file__).parents[1] / "examples.json"
_REF = "#/components/schemas/{model}"
SUMMARY = """Author, run and watch workflows.

Programs send a token (`Authorization: Bearer …`), browsers the cookie of a session. `x-permission`
says what an operation needs; what a caller may not see is answered as missing. Errors are problem
documents (RFC 9457, `application/problem+json`). Times are RFC 3339 in UTC. Lists come in pages:
`limit` and `cursor`. State changes only by POST, PUT and DELETE; running workflows change by
commands alone.
"""


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description of ``app``; computed once."""
    if app.openapi_schema is None:
        description = get_openapi(
            title="Shoal",
            version=app.version,
            description=SUMMARY,
            routes=app.routes,
            servers=[{"url": "/"}],
        )
        _add_models(description["components"]["schemas"])
        _use_definition(description)
        _use_command_types(description["components"]["schemas"])
        _rename_pages(description)
        _add_examples(description)
        _drop_nulls_of_parameters(description)
        _add_headers(description)
        _share_problems(description)
        app.openapi_schema = description
    return app.openapi_schema


def _add_models(schemas: dict[str, Any]) -> None:
    """Models that no signature names: problems, and the definition, which arrives unparsed."""
    for model in (Problem, ProblemField, StaleProblem, WorkflowSpec):
        schema = model.model_json_schema(ref_template=_REF, mode="validation")
        for name, inner in schema.pop("$defs", {}).items():
            schemas.setdefault(name, inner)
        schemas[model.__name__] = schema
    # The path gives both, so the body may leave them out.
    required = schemas["WorkflowSpec"]["required"]
    schemas["WorkflowSpec"]["required"] = [name for name in required if name == "tasks"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)


def _add_examples(description: dict[str, Any]) -> None:
    """Give requests and answers the recorded examples; others borrow one of the same schema."""
    recorded = json.loads(RECORDED.read_text())
    contents = [
        (recorded.get(operation["operationId"], {}).get(part), content["application/json"])
        for operations in description["paths"].values()
        for operation in operations.values()
        for part, bodies in (
            ("request", [operation.get("requestBody", {})]),
            ("answer", operation["responses"].values()),
        )
        for content in (body.get("content", {}) for body in bodies)
        if "application/json" in content
    ]
    by_schema = {
        media["schema"]["$ref"]: example
        for example, media in contents
        if example is not None and "$ref" in media["schema"]
    }
    for example, media in contents:
        found = by_schema.get(media["schema"].get("$ref")) if example is None else example
        if found is not None:
            media["example"] = found


def _use_definition(description: dict[str, Any]) -> None:
    publish = description["paths"]["/api/v1/projects/{project}/workflows/{name}"]["put"]
    body = publish["requestBody"]["content"]["application/json"]
    body["schema"] = {"$ref": _REF.format(model="WorkflowSpec")}


def _use_command_types(schemas: dict[str, Any]) -> None:
    """One schema for each type of command, chosen by ``type``."""
    whole = schemas["CommandIn"]
    mapping: dict[str, str] = {}
    for kind, schema in commands.schemas_by_type(whole).items():
        schemas[schema["title"]] = schema
        mapping[kind] = _REF.format(model=schema["title"])
    schemas["CommandIn"] = {
        "title": "CommandIn",
        "description": whole["description"],
        "oneOf": [{"$ref": reference} for reference in mapping.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }


def _rename_pages(description: dict[str, Any]) -> None:
    """``Page_BackfillOut_`` is how FastAPI calls what a client would call ``BackfillPage``."""
    schemas = description["components"]["schemas"]
    names = {
        name: name.removeprefix("Page_").removesuffix("_").removesuffix("Out") + "Page"
        for name in schemas
        if name.startswith("Page_")
    }
    for old, new in names.items():
        schemas[new] = {**schemas.pop(old), "title": new}
    moved = {_REF.format(model=old): _REF.format(model=new) for old, new in names.items()}
    for holder in _holders_of("$ref", description["paths"]):
        holder["$ref"] = moved.get(holder["$ref"], holder["$ref"])


def _drop_nulls_of_parameters(description: dict[str, Any]) -> None:
    """What may be left out is null in Python, but no query, header or path can say null."""
    for operations in description["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                schema = parameter["schema"]
                given = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
                if len(given) == 1:
                    del schema["anyOf"]
                    parameter["schema"] = {**given[0], **schema}


def _holders_of(key: str, value: Any) -> Iterator[dict[str, Any]]:
    """Yield each object in ``value`` that has the key."""
    if isinstance(value, dict):
        if key in value:
            yield value
        for inner in value.values():
            yield from _holders_of(key, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _holders_of(key, inner)


def _add_headers(description: dict[str, Any]) -> None:
    """What answers say beside their content: the request's id everywhere, and what follows."""
    for operations in description["paths"].values():
        is_mutable = any(_takes(one, "If-Match") for one in operations.values())
        for method, operation in operations.items():
            for status, response in operation["responses"].items():
                names = ["X-Request-Id"]
                if status in ("202", "429", "503"):
                    names.append("Retry-After")
                if status == "401" and "security" in operation:
                    names.append("WWW-Authenticate")
                if status == "202":
                    names.append("Location")
                    if _takes(operation, "Idempotency-Key"):
                        names.append("Idempotency-Replayed")
                changes = _takes(operation, "If-Match")
                if status in ("200", "201") and (changes or (is_mutable and method == "get")):
                    names.append("ETag")
                for name in names:
                    one = {"$ref": f"#/components/headers/{name}"}
                    response.setdefault("headers", {})[name] = one
    description["components"]["headers"] = _HEADERS


def _share_problems(description: dict[str, Any]) -> None:
    """Each problem response once: hundreds of operations have the same."""
    shared = description["components"].setdefault("responses", {})
    for operations in description["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if MEDIA_TYPE in response.get("content", {}):
                    same = [name for name, one in shared.items() if one == response]
                    others = sum(name.startswith(f"Problem{status}") for name in shared)
                    name = same[0] if same else f"Problem{status}{'b' * others}"
                    shared[name] = response
                    operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}


def _takes(operation: dict[str, Any], header: str) -> bool:
    return any(
        one["in"] == "header" and one["name"].lower() == header.lower()
        for one in operation.get("parameters", ())
    )


_TEXT = {"type": "string"}
_HEADERS: dict[str, Any] = {
    **ETAG,
    "X-Request-Id": {
        "description": "The id of the request, from its header or generated.",
        "schema": _TEXT,
        "example": "6f1c1d2e9b7a4c55",
    },
    "Retry-After": {
        "description": "Seconds after which another try may do.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 1,
    },
    "WWW-Authenticate": {
        "description": "How to say who asks.",
        "schema": _TEXT,
        "example": "Bearer",
    },
    "Idempotency-Replayed": {
        "description": "`true`: the key was used before, and this is what it had made.",
        "schema": {"type": "string", "const": "true"},
        "example": "true",
    },
    "Location": {
        "description": "Where to read what becomes of it.",
        "schema": {"type": "string", "format": "uri-reference"},
        "example": "/api/v1/commands/12",
    },
}


def resolve(description: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema, or response, that a reference stands for; others as they are."""
    while "$ref" in schema:
        _, _, kind, name = schema["$ref"].split("/")
        schema = description["components"][kind][name]
    return schema


def example_of(description: dict[str, Any], media: dict[str, Any]) -> Any:
    """Return the example for the content of a request or response; None if there is none."""
    examples = resolve(description, media.get("schema", {})).get("examples") or [None]
    return media.get("example", examples[0])
