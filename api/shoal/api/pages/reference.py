"""The documentation for people: one page made from the OpenAPI description, without scripts."""

import json
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from typing import Any

from shoal.api.pages.openapi import example_of, resolve

# The page loads nothing, from nowhere.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem;
       color: #1d2733; background: #fff; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #d5dce4; }
details { border: 1px solid #d5dce4; border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { background: #f3f6f9; padding: .7rem; border-radius: 6px; overflow-x: auto; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .15rem 1rem .15rem 0;
       vertical-align: top; }
.method { font-weight: 600; display: inline-block; min-width: 4.5rem; }
.quiet { color: #5a6877; }
@media (prefers-color-scheme: dark) {
  body { color: #dde5ee; background: #141a21; } pre { background: #1e2731; }
  details, h2 { border-color: #33404e; } .quiet { color: #93a3b5; } a { color: #7fb4ff; } }
"""


def page(description: dict[str, Any]) -> str:
    """Return the HTML page for an OpenAPI description."""
    by_tag: defaultdict[str, list[str]] = defaultdict(list)
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            text = "".join(_operation(description, path, method, operation))
            by_tag[operation["tags"][0]].append(text)
    sections = "".join(
        f"<h2>{escape(tag.capitalize())}</h2>{''.join(texts)}" for tag, texts in by_tag.items()
    )
    paragraphs = "".join(
        f"<p>{_inline(text)}</p>" for text in description["info"]["description"].split("\n\n")
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Shoal API</title><style>{_STYLE}</style></head><body><h1>Shoal API "
        f'<span class="quiet">{escape(description["info"]["version"])}</span></h1>{paragraphs}'
        '<p><a href="/api/v1/openapi.json">OpenAPI description</a></p>'
        f"{sections}</body></html>"
    )


def _operation(
    description: dict[str, Any], path: str, method: str, operation: dict[str, Any]
) -> Iterator[str]:
    yield (
        f'<details><summary><code><span class="method">{method.upper()}</span> {escape(path)}'
        f'</code> <span class="quiet">{escape(operation["summary"])}</span></summary>'
    )
    yield f"<p>{_inline(operation.get('description', ''))}</p>"
    yield from _parameters(operation.get("parameters", []))
    for media_type, media in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<h4>Request <code>{escape(media_type)}</code></h4>"
        yield _example(description, media)
    for status, given in operation["responses"].items():
        response = resolve(description, given)
        yield f"<h4>{escape(status)} <span class='quiet'>{_inline(response['description'])}</span>"
        yield "</h4>"
        if status.startswith("2"):
            for media in response.get("content", {}).values():
                yield _example(description, media)
    yield "</details>"


def _parameters(parameters: list[dict[str, Any]]) -> Iterator[str]:
    if not parameters:
        return
    yield "<table>"
    for parameter in parameters:
        need = ", required" if parameter.get("required") else ""
        text = parameter.get("description") or parameter.get("schema", {}).get("description", "")
        yield (
            f"<tr><td><code>{escape(parameter['name'])}</code></td>"
            f'<td class="quiet">{escape(parameter["in"])}{need}</td><td>{_inline(text)}</td></tr>'
        )
    yield "</table>"


def _example(description: dict[str, Any], media: dict[str, Any]) -> str:
    found = example_of(description, media)
    if found is None:
        found = resolve(description, media.get("schema", {})).get("description", "")
    text = found if isinstance(found, str) else json.dumps(found, indent=2, ensure_ascii=False)
    return f"<pre>{escape(text)}</pre>"


def _inline(text: str) -> str:
    """Escape, and set what stands in backticks as code."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
