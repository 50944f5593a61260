"""Long JSON texts, written and read piece by piece.

Python's own encoder and decoder are a single step for all other threads: one of a definition of
10,000 tasks holds the event loop up for a tenth of a second, whichever thread it is in. Here the
others have their turn in between. It takes several times as long; so use it in a thread, and for
texts that may be long.
"""

import json
from collections.abc import Iterator
from typing import Any

_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True)
_COMPACT_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def pieces(value: Any) -> Iterator[str]:
    """Yield the text of ``json.dumps`` with sorted keys, not escaped, in small pieces."""
    return _ENCODER.iterencode(value)


def compact(value: Any) -> str:
    """Return the shortest text of ``value`` with sorted keys, not escaped."""
    return "".join(_COMPACT_ENCODER.iterencode(value))


def read(text: str) -> Any:
    """Return the value of a text. Raises ValueError, RecursionError."""
    return json.loads(text, object_hook=_as_it_is)


def _as_it_is(members: dict[str, Any]) -> dict[str, Any]:
    """Return the object. That Python is called at all is what gives others their turn."""
    return members
