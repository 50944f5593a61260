"""What follows from the API is up to date, and nothing that callers rely on has gone."""

from copy import deepcopy
from typing import Any

import pytest
from jsonschema_rs import validator_for

from tests.contract.described import described
from tests.contract.files import PROMISES, contents, stale
from tests.contract.promises import broken, promises_of


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return described()


def test_committed_files_are_those_of_the_code() -> None:
    behind = [
        str(path.name)
        for path, content in contents()
        if not path.exists() or path.read_text() != content
    ]
    assert behind == [], "run `make contract`, and commit what it has written"


def test_module_of_a_tag_that_is_gone_is_stale() -> None:
    found = [path for path, _ in contents()]
    assert stale(found) == [], "run `make contract`, and commit what it has removed"
    *others, gone = found[:-1]
    assert stale([*others, found[-1]]) == [gone]


def test_nothing_that_callers_rely_on_has_gone(description: dict[str, Any]) -> None:
    lost = broken(PROMISES.read_text().splitlines(), promises_of(description))
    assert lost == [], "callers break: keep it, or `make contract BREAK=--break` and say so"


def test_examples_have_the_fields_of_their_schemas(description: dict[str, Any]) -> None:
    schemas = deepcopy(description["components"]["schemas"])
    for schema in schemas.values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    wrong = []
    for operations in description["paths"].values():
        for operation in operations.values():
            bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
            for media in (body.get("content", {}).get("application/json") for body in bodies):
                if media is not None:
                    whole = {**media["schema"], "components": {"schemas": schemas}}
                    errors = validator_for(whole).iter_errors(media.get("example"))
                    wrong += [f"{operation['operationId']}: {error.message}" for error in errors]
    assert wrong == [], "run `make examples contract`, and commit what they have written"


def _without_operation(changed: dict[str, Any]) -> None:
    del changed["paths"]["/api/v1/cluster"]["get"]


def _with_another_id(changed: dict[str, Any]) -> None:
    changed["paths"]["/api/v1/cluster"]["get"]["operationId"] = "cluster"


def _without_field(changed: dict[str, Any]) -> None:
    del changed["components"]["schemas"]["CalendarOut"]["properties"]["days"]


def _without_value(changed: dict[str, Any]) -> None:
    changed["components"]["schemas"]["StopCommand"]["properties"]["type"]["const"] = "HALT"


def _with_another_type(changed: dict[str, Any]) -> None:
    changed["components"]["schemas"]["CalendarOut"]["properties"]["name"]["type"] = "integer"


def _with_required_field(changed: dict[str, Any]) -> None:
    changed["components"]["schemas"]["CalendarIn"]["required"].append("description")


def _with_required_parameter(changed: dict[str, Any]) -> None:
    more = {"in": "query", "name": "why", "required": True, "schema": {"type": "string"}}
    changed["paths"]["/api/v1/cluster"]["get"].setdefault("parameters", []).append(more)


@pytest.mark.parametrize(
    "change",
    [
        _without_operation,
        _with_another_id,
        _without_field,
        _without_value,
        _with_another_type,
        _with_required_field,
        _with_required_parameter,
    ],
)
def test_change_that_breaks_callers_is_noticed(description: dict[str, Any], change: Any) -> None:
    changed = deepcopy(description)
    change(changed)
    assert broken(promises_of(description), promises_of(changed))


def test_what_is_added_breaks_nobody(description: dict[str, Any]) -> None:
    changed = deepcopy(description)
    paths, schemas = changed["paths"], changed["components"]["schemas"]
    paths["/api/v1/more"] = {
        "get": {
            **deepcopy(paths["/api/v1/projects/{project}"]["get"]),
            "operationId": "getMore",
        }
    }
    schemas["CalendarOut"]["properties"]["more"] = {"type": "string"}
    schemas["CalendarIn"]["properties"]["more"] = {"type": "string"}
    assert broken(promises_of(description), promises_of(changed)) == []


def test_ids_are_readable_and_every_list_comes_in_pages(description: dict[str, Any]) -> None:
    """``getProgress`` asks workers about running tasks of one instance, and has a limit.

    ``getAuditLinks`` goes on behind a position, which is the chain's own.
    """
    for path, operations in description["paths"].items():
        for operation in operations.values():
            name = operation["operationId"]
            assert name.isidentifier(), path
            assert "_" not in name, path
            assert name[0].islower(), path
            if name.startswith("list"):
                names = {one["name"] for one in operation.get("parameters", ())}
                assert {"limit", "cursor"} <= names, f"{name} has no pages"
                schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
                assert schema["$ref"].endswith("Page"), name
            else:
                for status in ("200", "201"):
                    content = operation["responses"].get(status, {}).get("content", {})
                    schema = content.get("application/json", {}).get("schema", {})
                    is_list = schema.get("type") == "array" and name not in (
                        "getProgress",
                        "getAuditLinks",
                    )
                    assert not is_list, f"{name} answers a list without pages"
