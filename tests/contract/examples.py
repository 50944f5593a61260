"""The examples of the description: requests and answers of the conformance test, made stable."""

import json
import re
from collections.abc import Mapping
from typing import Any

from shoal.api.pages.openapi import RECORDED

MOST_ITEMS = 2  # of a list
LONGEST_TEXT = 400  # characters
# Values that differ from one recording to the next, or look like secrets, and their replacements.
_STABLE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}[\d.]*(Z|[+-]\d\d:\d\d)"), "2026-11-21T06:00:00Z"),
    (re.compile(r"\d{4}(-\d\d){2} \d\d:\d\d UTC"), "2026-11-21 06:00 UTC"),
    (
        re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
        "6f1c1d2e-9b7a-4c55-8a3e-0d1f2b3c4d5e",
    ),
    (re.compile(r"shoal_pat_\w+"), "shoal_pat_…"),
    (re.compile(r"^[\w-]{24}$"), "Zx3nT0qYb1Wc8RkfLm2Vd9Hs"),
    (re.compile(r"^[\w-]{43}$"), "Zx3nT0qYb1Wc8RkfLm2Vd9HsJg5PaXeUi7OoQvBtNyA"),
    (re.compile(r"\b[0-9a-f]{40,}\b"), "9f86d081884c7d65" * 4),
    (re.compile(r"\b[0-9a-f]{12,16}\b"), "6f1c1d2e9b7a"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "worker1.example:7071"),
    (re.compile(r"/\S*/data folder"), "/var/lib/shoal"),
)


def recorded(exchanges: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the file of examples; ``exchanges``: ``request`` and ``answer`` by operation.

    An example that still has the shape of the new request or answer keeps its values, so that a
    recording changes only what has other fields.
    """
    before = json.loads(RECORDED.read_text())
    lines = []
    for name, parts in sorted(exchanges.items()):
        found = {part: _stable(value) for part, value in parts.items() if _is_json(value)}
        for part, old in before.get(name, {}).items():
            if part in found and _shape(old) == _shape(found[part]):
                found[part] = old
        texts = (
            f"  {json.dumps(part)}: {json.dumps(found[part], ensure_ascii=False)}"
            for part in sorted(found)
        )
        if found:
            lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(texts) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _is_json(value: Any) -> bool:
    return value is not None and not isinstance(value, bytes)


def _shape(value: Any) -> Any:
    """Return a value without its texts and numbers: the names of its fields, at every depth."""
    match value:
        case dict():
            return {name: _shape(inner) for name, inner in value.items()}
        case list():
            return [_shape(inner) for inner in value if isinstance(inner, dict)]
        case _:
            return None


def _stable(value: Any) -> Any:
    match value:
        case dict():
            # Tools would follow the references of a JSON Schema within an answer.
            return {_stable(k): _stable(v) for k, v in value.items() if not k.startswith("$")}
        case list():
            return [_stable(inner) for inner in value[:MOST_ITEMS]]
        case float():
            return round(value, 3)
        case str():
            for pattern, text in _STABLE:
                value = pattern.sub(text, value)
            return value if len(value) <= LONGEST_TEXT else value[:LONGEST_TEXT] + "…"
        case _:
            return value
