"""Paths into JSON: ``$``, ``$.job.id``, ``$.items[0].name``, ``$.items[-1]``, ``$.items[*].id``,
``$.data["odd name"]``.

A part of RFC 9535 without its filters: a path costs as much as the value has members, whatever a
server answers.
"""

import json
import re
from typing import Any

_STEP = re.compile(
    r"\.(?P<name>[^\W\d][\w-]*)"
    r"|\[(?P<index>-?[0-9]{1,9})\]"
    r"|\[(?P<all>\*)\]"
    r"|\[(?P<quoted>\"(?:[^\"\\]|\\.)*\"|'[^'\\]*')\]"
)
_LONGEST = 500  # characters

Step = str | int | None  # a member's name, a place in a list, all of them


def parse(path: str) -> tuple[Step, ...]:
    """Return the steps of a path. Raises ValueError."""
    if not path.startswith("$"):
        raise ValueError(f"{path!r} is not a JSON path: expected one such as $.job.id")
    if len(path) > _LONGEST:
        raise ValueError(f"a JSON path has at most {_LONGEST} characters")
    steps: list[Step] = []
    position = 1
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None:
            raise ValueError(
                f"{path!r} is not a JSON path: {path[position:]!r} is neither .name, nor a place "
                'such as [0], nor [*], nor ["odd name"]'
            )
        steps.append(_step(found))
        position = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["name"] is not None:
        return found["name"]
    if found["index"] is not None:
        return int(found["index"])
    if found["all"] is not None:
        return None
    quoted = found["quoted"]
    try:
        return quoted[1:-1] if quoted.startswith("'") else str(json.loads(quoted))
    except ValueError:
        raise ValueError(f"{quoted} is not text as in JSON") from None


def find(value: Any, path: str) -> Any:
    """Return what is at ``path``; a list of all that is there if the path has ``[*]``.

    Raises LookupError if there is nothing, ValueError if it is not a path.
    """
    steps = parse(path)
    found = [value]
    for step in steps:
        found = [inner for one in found for inner in _members(one, step)]
    if None in steps:
        return found
    if not found:
        raise LookupError(path)
    return found[0]


def _members(value: Any, step: Step) -> list[Any]:
    match step, value:
        case str(), dict() if step in value:
            return [value[step]]
        case int(), list() if -len(value) <= step < len(value):
            return [value[step]]
        case None, list():
            return value
        case None, dict():
            return list(value.values())
    return []
