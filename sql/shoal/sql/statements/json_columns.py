"""Small values of the core that stand in JSON columns."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row

from shoal.core.definition.selection import Selection, SelectionMode
from shoal.core.runs.commands import Parent

_Stored = Mapping[str, Any] | None


def selection_json(selection: Selection | None) -> dict[str, Any] | None:
    """Return what the column ``selection`` holds."""
    if selection is None:
        return None
    return {"tasks": list(selection.tasks), "mode": selection.mode}


def selection_of(stored: _Stored) -> Selection | None:
    """Return the selection that a column holds."""
    if stored is None:
        return None
    return Selection(tuple(stored["tasks"]), SelectionMode(stored["mode"]))


def parent_json(parent: Parent | None) -> dict[str, Any] | None:
    """Return what the column ``parent`` holds."""
    return None if parent is None else asdict(parent)


def parent_of(stored: _Stored) -> Parent | None:
    """Return the parent that a column holds."""
    if stored is None:
        return None
    return Parent(**{**stored, "ancestors": tuple(stored.get("ancestors", ()))})


def id_and_parent(row: Row[Any]) -> tuple[int, Parent]:
    """Return the id and the parent of a row. Raises ValueError if it has none."""
    parent = parent_of(row.parent)
    if parent is None:
        raise ValueError("it has no parent")
    return row.id, parent


def check_texts(stored: Any) -> None:
    """Raise ValueError unless a column holds texts by name, as parameters are."""
    if not isinstance(stored, dict) or not all(isinstance(v, str) for v in stored.values()):
        raise ValueError("parameters are not texts by name")
