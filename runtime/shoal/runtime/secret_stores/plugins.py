"""Kinds of stores that are installed on this machine: found by entry points."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import ValidationError

from shoal.runtime.secret_stores.store import SecretStore
from shoal.runtime.settings import InvalidSettings

ENTRY_POINT_GROUP = "shoal.secret_stores"


def installed() -> dict[str, EntryPoint]:
    """Return the kinds that there are, by name; none is imported yet."""
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def open_store(name: str, table: Mapping[str, Any]) -> SecretStore[Any]:
    """Return the store that a table of the settings describes. Raises InvalidSettings."""
    where = f"[cluster.secret_stores.{name}]"
    kinds = installed()
    kind = table.get("kind")
    if kind not in kinds:
        known = ", ".join(sorted(kinds)) or "none"
        raise InvalidSettings(
            f"{where}: kind: there is no kind {kind!r} of stores here; installed are: {known}"
        )
    try:
        found = kinds[str(kind)].load()
    except ImportError as error:
        raise InvalidSettings(f"{where}: the kind {kind} cannot be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, SecretStore)):
        raise InvalidSettings(f"{where}: the plug-in of the kind {kind} is no SecretStore")
    try:
        return found(name, found.Settings.model_validate(dict(table)))
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        raise InvalidSettings("\n".join([f"settings of {where} are wrong:", *lines])) from error
