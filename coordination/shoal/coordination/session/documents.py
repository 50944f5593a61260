"""JSON as it is found in znodes, where any program may have left anything."""

import json
from typing import Any

# What one process says of itself; a longer document is not one of ours.
MOST_BYTES = 64 * 1024


def read_json(data: bytes) -> Any:
    """Return the value in ``data``. Raises ValueError for all that is not JSON.

    NaN and Infinity are not JSON either, and neither is what is nested so deep that reading it
    would end in a RecursionError.
    """
    try:
        return json.loads(data, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def read_object(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object in ``data``; None if something else is there, or far too much."""
    if len(data) > MOST_BYTES:
        return None
    try:
        value = read_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
