"""Junk in every input of the API: an answer in bounded time, never an internal error.

The requests are made from the description: for every operation, each parameter of the path, the
query and the headers, and each field of the body, is replaced by junk in a request that is good
otherwise. The short form asks with some of the junk for each input, in turn;
``SHOAL_POISON_SHARE=1`` asks with all of it, ``SHOAL_POISON_SEED`` with other ones first.
"""

import asyncio
import json
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from shoal.api.pages.openapi import RECORDED
from shoal.api.web.sse import MEDIA_TYPE as STREAM
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import create_key
from tests.contract.described import described
from tests.integration.api.access.table import BODIES, in_path
from tests.integration.api.conftest import PREFIX, Api
from tests.integration.api.stock import stocked

SHARE = float(os.environ.get("SHOAL_POISON_SHARE", "0.1"))  # of the junk, for each input
SEED = int(os.environ.get("SHOAL_POISON_SEED", "1"))
LONGEST_S = 20.0  # of an answer, on a machine that is busy
_HERE = "the junk goes here"
_STREAMED_S = 0.5  # a stream that has begun is an answer
_DEEPEST = 4  # levels of a body whose fields are replaced
UNAVAILABLE = frozenset({"log-unavailable", "no-worker", "storage-unavailable", "unavailable"})

#: What a field of a body is replaced by, as JSON or as what claims to be.
BODIES_OF_JUNK: Mapping[str, str] = {
    "null": "null",
    "true": "true",
    "negative": "-1",
    "too large for the database": str(2**63),
    "fraction": "1.5",
    "large fraction": "1e308",
    "infinite": "1e999",
    "no number": "NaN",
    "5,000 digits": "9" * 5_000,
    "5,000 digits as text": f'"{"9" * 5_000}"',
    "object": '{"a": {"b": [null]}}',
    "list": "[[[]]]",
    "empty text": '""',
    "100,000 lists": "[" * 100_000,
    "90 lists": "[" * 90 + "]" * 90,
    "100,000 objects": '{"a":' * 100_000,
    "braces": f'"{"${" * 50_000}"',
    "macros": f'"{"$[" * 50_000}"',
    "templates": f'"{"{{" * 50_000}"',
    "10 MiB": f'"{"x" * (10 << 20)}"',
    "NUL": r'"a\u0000b"',
    "lone surrogate": r'"a\ud800b"',
    "the year 1": '"0001-01-01T00:00:00Z"',
    "the year 9999": '"9999-12-31T23:59:59.999999Z"',
    "the year 9999 elsewhere": '"9999-12-31T23:59:59-23:59"',
    "date": '"0001-01-01"',
    "other digits": '"١٢"',
    "wildcards": '"%_*?[\\\\"',
    "control characters": r'"\u001b[31m\r\n\u202e"',
}
#: What a parameter is replaced by, as it stands in a path or query.
PARAMETERS_OF_JUNK: Mapping[str, str] = {
    "empty": "",
    "negative": "-1",
    "too large for the database": str(2**63),
    "5,000 digits": "9" * 5_000,
    "no number": "NaN",
    "infinite": "1e999",
    "fraction": "1.5",
    "NUL": "a%00b",
    "no UTF-8": "%ff%fe",
    "lone surrogate": "%ed%a0%80",
    "5,000 brackets": quote("[" * 5_000, safe=""),
    "braces": quote("${" * 2_000, safe=""),
    "long": "x" * 20_000,
    "the year 1": "0001-01-01T00:00:00Z",
    "the year 9999": "9999-12-31T23:59:59Z",
    "date": "9999-12-31",
    "first date": "0001-01-01",
    "other digits": quote("١٢"),
    "wildcards": quote("%_*?[\\", safe=""),
    "other folder": quote("../../x", safe=""),
    "control characters": "%1b%0d%0a",
    "quotes": quote("'\";--", safe=""),
}


@dataclass
class Poisoner:
    """Asks one operation after the other, and counts."""

    api: Api
    description: Mapping[str, Any]
    made: Mapping[str, Any]
    choice: random.Random = field(default_factory=lambda: random.Random(SEED))
    answers: Counter[int] = field(default_factory=Counter)
    inputs: int = 0
    slowest: tuple[float, str] = (0.0, "")
    wrong: list[str] = field(default_factory=list)

    async def poison(self, method: str, path: str, operation: Mapping[str, Any]) -> None:
        """Put junk into each input of an operation."""
        route = (method.upper(), path.removeprefix(PREFIX))
        named = in_path(route, dict(self.made))
        good = defaultdict(lambda: "x", {k: quote(str(v), safe="") for k, v in named.items()})
        body = self._body(route, operation)
        given = operation.get("parameters", ())
        for parameter in (resolved(self.description, one) for one in given):
            for junk, value in self._some(PARAMETERS_OF_JUNK):
                name, where = parameter["name"], parameter["in"]
                what = f"{operation['operationId']} {where} {name}: {junk}"
                values = good.copy()
                if where == "path":
                    values[name] = value
                if where == "path" and not value:
                    continue
                query = f"?{name}={value}" if where == "query" else ""
                headers = {name: value[:1_000]} if where == "header" else {}
                if where == "path" or method != "delete":
                    url = path.format_map(values) + query
                    await self._ask(what, method, url, operation, body, headers)
        schema = body_schema(self.description, operation)
        for place in () if schema is None else [(), *places(self.description, schema)]:
            for junk, value in self._some(BODIES_OF_JUNK):
                what = f"{operation['operationId']} body {'.'.join(place) or '(all)'}: {junk}"
                text = json.dumps(replaced(body, place)).replace(f'"{_HERE}"', value)
                await self._ask(what, method, path.format_map(good), operation, text)

    def _some(self, junk: Mapping[str, str]) -> list[tuple[str, str]]:
        self.inputs += 1
        return self.choice.sample(sorted(junk.items()), max(2, round(len(junk) * SHARE)))

    def _body(self, route: tuple[str, str], operation: Mapping[str, Any]) -> Any:
        recorded = json.loads(RECORDED.read_text()).get(operation["operationId"], {})
        return BODIES[route](dict(self.made)) if route in BODIES else recorded.get("request")

    async def _ask(
        self,
        what: str,
        method: str,
        url: str,
        operation: Mapping[str, Any],
        body: Any = None,
        headers: Mapping[str, str] = {},
    ) -> None:
        is_stream = STREAM in operation["responses"].get("200", {}).get("content", ())
        content = body if isinstance(body, bytes | str) or body is None else json.dumps(body)
        sent = {"Content-Type": "application/json", "If-Match": "*", **headers}
        began = time.monotonic()
        try:
            async with asyncio.timeout(_STREAMED_S if is_stream else LONGEST_S):
                answer = await self.api.client.request(
                    method, url, content=content, headers=sent if body is not None else headers
                )
        except TimeoutError:
            if not is_stream:
                self.wrong.append(f"{what}: no answer within {LONGEST_S:g} s")
            return
        except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeError, ValueError):
            return  # no client can ask for that
        self.answers[answer.status_code] += 1
        self.slowest = max(self.slowest, (time.monotonic() - began, what))
        if answer.status_code < 500:
            return
        slug = answer.json().get("type", "").removeprefix("/problems/")
        if answer.status_code != 503 or slug not in UNAVAILABLE:
            self.wrong.append(f"{what}: {answer.status_code} {answer.text[:300]}")


def resolved(description: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references."""
    while "$ref" in schema:
        found: Any = description
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def body_schema(
    description: Mapping[str, Any], operation: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the schema of a body that is JSON."""
    content = resolved(description, operation.get("requestBody", {})).get("content", {})
    found: Mapping[str, Any] | None = content.get("application/json", {}).get("schema")
    return found


def places(
    description: Mapping[str, Any], schema: Mapping[str, Any], depth: int = 0
) -> Iterator[tuple[str, ...]]:
    """Yield the place of each field in a body; ``*``: an item of a list, or any name."""
    schema = resolved(description, schema)
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from places(description, one, depth)
    if depth == _DEEPEST:
        return
    inside = dict(schema.get("properties", {}))
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            inside["*" if key == "items" else "x"] = schema[key]
    for name, below in inside.items():
        yield (name,)
        for rest in places(description, below, depth + 1):
            yield (name, *rest)


def replaced(body: Any, place: tuple[str, ...]) -> Any:
    """Return a body with junk at a place; what is missing on the way there is made."""
    if not place:
        return _HERE
    name, *rest = place
    if name == "*":
        inside = body[0] if isinstance(body, list) and body else None
        return [replaced(inside, tuple(rest))]
    found = deepcopy(body) if isinstance(body, dict) else {}
    return {**found, name: replaced(found.get(name), tuple(rest))}


@pytest.fixture
async def stock(api: Api, cluster: ClusterSettings) -> Mapping[str, Any]:
    """Some rows of every kind, in a project that is poisoned and in one that is not."""
    create_key(cluster.secrets_key_file)
    await stocked(api, "calm")
    return await stocked(api, "flights")


async def test_junk_in_every_input_is_answered(api: Api, stock: Mapping[str, Any]) -> None:
    description = described()
    poisoner = Poisoner(api, description, stock)
    lists = [
        path
        for path, operations in description["paths"].items()
        if "get" in operations and "{" not in path and not _is_stream(operations["get"])
    ]
    before = {path: (await api.client.get(path)).status_code for path in lists}
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            await poisoner.poison(method, path, operation)
    asked = sum(poisoner.answers.values())
    sys.stdout.write(
        f"\n{poisoner.inputs} inputs, {asked} answers: "
        f"{', '.join(f'{status}: {n}' for status, n in sorted(poisoner.answers.items()))}; "
        f"the slowest took {poisoner.slowest[0]:.2f} s: {poisoner.slowest[1]}\n"
    )
    assert not poisoner.wrong, "\n".join(poisoner.wrong[:40])
    assert asked > 2_000
    # What has been stored of it hides nothing.
    for path, status in before.items():
        assert (await api.client.get(path)).status_code == status, path
    found = (await api.client.get(f"{PREFIX}/projects?limit=200")).json()["items"]
    assert "calm" in {one["name"] for one in found}
    runs = (await api.client.get(f"{PREFIX}/instances?project=calm")).json()["items"]
    assert runs


def _is_stream(operation: Mapping[str, Any]) -> bool:
    return STREAM in operation["responses"].get("200", {}).get("content", ())
