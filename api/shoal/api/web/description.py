"""The OpenAPI description: what FastAPI derives, and what it cannot derive."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from shoal.api.schemas import (
    authoring,
    backfills,
    commands,
    concurrency,
    data_sources,
    definitions,
    environments,
    resources,
    runs,
    schedules,
)
from shoal.api.schemas.platform import access, cluster, health
from shoal.api.web.problems import Problem, ProblemField
from shoal.core.definition.model import WorkflowSpec

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
        _restore_examples(description["components"]["schemas"])
        _use_definition(description)
        app.openapi_schema = description
    return app.openapi_schema


def _add_models(schemas: dict[str, Any]) -> None:
    """Models that no signature names: problems, and the definition, which arrives unparsed."""
    for model in (Problem, ProblemField, WorkflowSpec):
        schema = model.model_json_schema(ref_template=_REF, mode="validation")
        for name, inner in schema.pop("$defs", {}).items():
            schemas.setdefault(name, inner)
        schemas[model.__name__] = schema
    # The path gives both, so the body may leave them out.
    required = schemas["WorkflowSpec"]["required"]
    schemas["WorkflowSpec"]["required"] = [name for name in required if name == "tasks"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)


def _restore_examples(schemas: dict[str, Any]) -> None:
    """FastAPI drops every null, in examples too; but our answers have all their fields."""
    for module in (
        access,
        authoring,
        backfills,
        cluster,
        commands,
        concurrency,
        data_sources,
        definitions,
        environments,
        health,
        resources,
        runs,
        schedules,
    ):
        for model in vars(module).values():
            if isinstance(model, type) and issubclass(model, BaseModel):
                extra = model.model_config.get("json_schema_extra")
                if isinstance(extra, dict) and "examples" in extra and model.__name__ in schemas:
                    schemas[model.__name__]["examples"] = extra["examples"]


def _use_definition(description: dict[str, Any]) -> None:
    publish = description["paths"]["/api/v1/projects/{project}/workflows/{name}"]["put"]
    body = publish["requestBody"]["content"]["application/json"]
    examples = body["schema"].get("examples", [])
    body["schema"] = {"$ref": _REF.format(model="WorkflowSpec")}
    body["examples"] = {"definition": {"value": examples[0]}}


def resolve(description: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that a reference stands for; other schemas as they are."""
    while "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = description["components"]["schemas"][name]
    return schema


def example_of(description: dict[str, Any], media: dict[str, Any]) -> Any:
    """Return an example for the content of a request or response; None if there is none.

    Lists and pages borrow the example of their items.
    """
    if "example" in media:
        return media["example"]
    if "examples" in media:
        return next(iter(media["examples"].values()))["value"]
    return _schema_example(description, media.get("schema", {}))


def _schema_example(description: dict[str, Any], schema: dict[str, Any]) -> Any:
    schema = resolve(description, schema)
    if schema.get("examples"):
        return schema["examples"][0]
    if schema.get("type") == "array":
        item = _schema_example(description, schema["items"])
        return None if item is None else [item]
    properties = schema.get("properties", {})
    if {"items", "next"} == properties.keys():
        items = _schema_example(description, properties["items"])
        return None if items is None else {"items": items, "next": None}
    return None
