"""The committed files that follow from the API, and what they ought to hold."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.contract import client
from tests.contract.described import described, text_of
from tests.contract.promises import promises_of

ROOT = Path(__file__).parents[2]
DESCRIPTION = ROOT / "docs/openapi.json"
CLIENT = ROOT / "client/shoal/client/rest/operations/generated"
PROMISES = ROOT / "docs/openapi-promises.txt"


def contents() -> Iterator[tuple[Path, str]]:
    """Yield each file with what it ought to hold."""
    description = described()
    yield DESCRIPTION, text_of(description)
    yield PROMISES, "\n".join(promises_of(description)) + "\n"
    yield CLIENT / "types.py", client.types(description)
    yield CLIENT / "calls/__init__.py", client.calls_room()
    for name, text in client.calls(description):
        yield CLIENT / f"calls/{name}.py", text
    yield CLIENT / "operations.py", client.operations(description)


def stale(found: Iterable[Path]) -> list[Path]:
    """Return the committed modules of the client that nothing follows from any longer.

    ``found``: the files that ``contents`` yields.
    """
    kept = {*found, CLIENT / "__init__.py"}
    return sorted(path for path in CLIENT.rglob("*.py") if path not in kept)
