"""JSON as it is found in znodes, where any program may have left anything."""

from typing import Any

from shoal.core import untrusted

# What one process says of itself; a longer document is not one of ours.
MOST_BYTES = 64 * 1024


def read_json(data: bytes) -> Any:
    """Return the value in ``data``. Raises ValueError for all that is not JSON.

    Many readers write the value again, as JSON or as UTF-8: NaN, Infinity, numbers of thousands of
    digits, lone surrogates and more than a hundred levels are refused here.
    """
    return untrusted.read_json(data, is_strict=True)


def read_object(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object in ``data``; None if something else is there, or far too much."""
    if len(data) > MOST_BYTES:
        return None
    try:
        value = read_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
