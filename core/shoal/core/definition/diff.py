"""What changed between two versions of a definition, value by value.

Works on canonical forms (plain JSON values without defaults). Tasks are matched by name, so a
task in another place is not a change of its content.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Op(StrEnum):
    """What happened to a value."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True)
class Change:
    """One difference. ``path`` leads to the value: ``tasks[clean].params.script``."""

    op: Op
    path: str
    before: Any = None
    after: Any = None


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return the changes from ``before`` to ``after``; empty exactly if they are equal."""
    return list(_mappings("", before, after))


def _mappings(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for key in [*before, *(key for key in after if key not in before)]:
        inner = f"{path}.{key}" if path else key
        yield from _optional(inner, before, after, key)


def _optional(
    path: str, before: Mapping[str, Any], after: Mapping[str, Any], key: str
) -> Iterator[Change]:
    if key in before and key in after:
        yield from _values(path, before[key], after[key])
    elif (one := before.get(key, after.get(key))) and _is_named_list(one):
        yield from _values(path, before.get(key, []), after.get(key, []))
    elif key in after:
        yield Change(Op.ADDED, path, after=after[key])
    else:
        yield Change(Op.REMOVED, path, before=before[key])


def _values(path: str, before: Any, after: Any) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _mappings(path, before, after)
    elif (before or after) and _is_named_list(before) and _is_named_list(after):
        yield from _named_lists(path, before, after)
    elif _differ(before, after):
        yield Change(Op.CHANGED, path, before, after)


def _differ(before: Any, after: Any) -> bool:
    # For Python 1 == True == 1.0; for JSON they are three values.
    return type(before) is not type(after) or before != after


def _is_named_list(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in value
    )


def _named_lists(path: str, before: list[Any], after: list[Any]) -> Iterator[Change]:
    old, new = ({item["name"]: item for item in items} for items in (before, after))
    if len(old) < len(before) or len(new) < len(after):  # names twice: nothing to match by
        if before != after:
            yield Change(Op.CHANGED, path, before, after)
        return
    for name in [*old, *(name for name in new if name not in old)]:
        yield from _optional(f"{path}[{name}]", old, new, name)
    kept = [name for name in old if name in new]
    order = [name for name in new if name in old]
    if kept != order:
        yield Change(Op.CHANGED, f"{path}: order", kept, order)
