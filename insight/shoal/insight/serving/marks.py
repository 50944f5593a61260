"""Marks: what a run of the jobs leaves beside its results when it has ended.

``finished/<name>.json`` names each result that it has stored, with the digest of its file. Who
loads results looks for marks, and removes those that it has dealt with. Names are in the order of
time; each run has a mark of its own, so runs at the same time do not disturb each other.
"""

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime

from shoal.core.untrusted import read_json

FOLDER = "finished"
NAME = re.compile(r"[0-9]{16}-[0-9a-f]{8}\.json")
_FORMAT = 1


class BadMark(ValueError):
    """A mark cannot be read."""


@dataclass(frozen=True)
class StoredResult:
    """A result that was stored. ``sha256`` is that of its file."""

    job: str
    day: date
    rows: int
    sha256: str


def new_name() -> str:
    """Return a name that no other mark has."""
    at = int(datetime.now(UTC).timestamp() * 1_000_000)
    return f"{at:016}-{secrets.token_hex(4)}.json"


def age_s(name: str) -> float:
    """Return how long ago a mark was made, by the clock of the machine that has made it."""
    return datetime.now(UTC).timestamp() - int(name.partition("-")[0]) / 1_000_000


def written(results: Sequence[StoredResult]) -> bytes:
    """Return the content of a mark."""
    listed = [asdict(one) | {"day": one.day.isoformat()} for one in results]
    return json.dumps({"format": _FORMAT, "results": listed}, separators=(",", ":")).encode()


def read(content: bytes) -> list[StoredResult]:
    """Return what a mark says. Raises BadMark."""
    try:
        found = read_json(content)
        if found["format"] != _FORMAT:
            raise BadMark(f"it has the format {found['format']!r:.20}, which a newer Shoal writes")
        return [
            StoredResult(
                job=str(one["job"]),
                day=date.fromisoformat(one["day"]),
                rows=int(one["rows"]),
                sha256=str(one["sha256"]),
            )
            for one in found["results"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise (
            error if isinstance(error, BadMark) else BadMark(f"it is not a mark: {error}")
        ) from error
