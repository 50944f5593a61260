"""The committed files that follow from the API, and what they ought to hold."""

from collections.abc import Iterator
from pathlib import Path

from tests.contract.described import described, text_of
from tests.contract.promises import promises_of

ROOT = Path(__file__).parents[2]
DESCRIPTION = ROOT / "docs/openapi.json"
PROMISES = ROOT / "docs/openapi-promises.txt"


def contents() -> Iterator[tuple[Path, str]]:
    """Yield each file with what it ought to hold."""
    description = described()
    yield DESCRIPTION, text_of(description)
    yield PROMISES, "\n".join(promises_of(description)) + "\n"
