"""How far the export has come, and the manifest that says so.

One row decides: an export counts when it has replaced the position that it started from. Of two
exporters that start from the same one, one comes too late.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from sqlalchemy import select, update

from shoal.sql.driver.connection import Connection
from shoal.sql.schema.tables import history_export

_NUMBER = 1
_E = history_export.c


@dataclass(frozen=True)
class ExportPosition:
    """What was exported: all that had ended up to these ids, each the last one that was read.

    ``instances`` counts up to ``instances_end``, the last instance that there was when the export
    began: what had ended by then is found by its id, all else by ``event``. ``commands`` are those
    up to that id but for ``open_commands``, which were not handled yet. ``plans``: up to which
    version each workflow's plans were exported, by workflow id.

    ``retired``: files that were replaced, by their paths, and when, in seconds since 1970; readers
    may still have them open. ``swept``: the day on which unneeded files were last removed.
    ``damaged``: files that were found damaged or missing, by their paths, as the history's
    ``Damage`` in JSON: no manifest names them, they count again when they are whole again.
    """

    event: int
    instances_end: int
    instances: int = 0
    command: int = 0
    open_commands: Sequence[int] = ()
    takeover: int = 0
    plans: Mapping[int, int] = field(default_factory=dict)
    retired: Mapping[str, float] = field(default_factory=dict)
    swept: str = ""
    damaged: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return what ``from_json`` reads."""
        return asdict(self) | {
            "open_commands": list(self.open_commands),
            "plans": {str(workflow): version for workflow, version in self.plans.items()},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Build it from what ``to_json`` made."""
        plans = {int(workflow): version for workflow, version in stored["plans"].items()}
        made = cls(**{**stored, "plans": plans})
        return replace(made, open_commands=tuple(made.open_commands))


@dataclass(frozen=True)
class Exported:
    """The last export. ``sequence`` counts them from 1; 0: there was none, and no manifest."""

    sequence: int
    position: ExportPosition | None
    manifest: Mapping[str, Any]


class HistoryExports:
    """The ``history_export`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def last(self) -> Exported:
        """Return the last export."""
        row = await self._connection.first(select(history_export).where(_E.number == _NUMBER))
        if row is None:
            return Exported(0, None, {})
        return Exported(row.sequence, ExportPosition.from_json(row.position), row.manifest)

    async def replace(self, before: Exported, position: ExportPosition, manifest: Any) -> bool:
        """Store the export that follows ``before``; False: another one has followed already."""
        values = {
            "number": _NUMBER,
            "sequence": before.sequence + 1,
            "position": position.to_json(),
            "manifest": manifest,
        }
        if not before.sequence:
            return await self._connection.insert_new(history_export, ["number"], values) == 1
        changed = await self._connection.execute(
            update(history_export)
            .where(_E.number == _NUMBER, _E.sequence == before.sequence)
            .values(values)
        )
        return changed.rowcount == 1
