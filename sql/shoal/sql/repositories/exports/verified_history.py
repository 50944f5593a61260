"""Up to where the exported history was found whole in its storage: what may leave the database.

The process that exports stores it, behind each export and whenever it has looked at the files
again. The purge compares ids with it, in the transaction that deletes.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, update

from shoal.sql.driver.connection import Connection
from shoal.sql.repositories.exports.position import ExportPosition
from shoal.sql.schema.tables import history_verified

_NUMBER = 1
_V = history_verified.c


@dataclass(frozen=True)
class Verified:
    """What has a verified file: the numbers of ``ExportPosition`` as of the export ``sequence``.

    ``sequence`` 0: nothing has. ``verified_at``: when an export found all in order last.
    ``checked``: the path of the file that was looked at again last. ``trouble``: why the export is
    behind, or what the history lacks, since ``trouble_since``; None: nothing is known.
    """

    sequence: int = 0
    event: int = 0
    instances: int = 0
    instances_end: int = 0
    command: int = 0
    open_commands: Collection[int] = ()
    takeover: int = 0
    verified_at: datetime | None = None
    checked: str = ""
    trouble: str | None = None
    trouble_since: datetime | None = None


class VerifiedHistory:
    """The ``history_verified`` table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self) -> Verified:
        """Return what was verified."""
        row = await self._connection.first(select(history_verified).where(_V.number == _NUMBER))
        if row is None:
            return Verified()
        return Verified(**{name: value for name, value in row._mapping.items() if name != "number"})

    async def advance(
        self,
        sequence: int,
        position: ExportPosition,
        at: datetime,
        *,
        checked: str,
        trouble: str | None = None,
    ) -> None:
        """Note that all up to the position of an export is in files that are whole.

        A later export may have been noted meanwhile: then nothing changes.
        """
        values = {
            "sequence": sequence,
            "event": position.event,
            "instances": position.instances,
            "instances_end": position.instances_end,
            "command": position.command,
            "open_commands": list(position.open_commands),
            "takeover": position.takeover,
            "verified_at": at,
            "checked": checked,
        }
        stored = await self._stored()
        since = (stored.trouble_since or at) if trouble is not None else None
        await self._connection.execute(
            update(history_verified)
            .where(_V.number == _NUMBER, _V.sequence <= sequence)
            .values(**values, trouble=trouble, trouble_since=since)
        )

    async def note_trouble(self, trouble: str, at: datetime) -> None:
        """Note why the export is behind; since when stays as it was."""
        stored = await self._stored()
        await self._connection.execute(
            update(history_verified)
            .where(_V.number == _NUMBER)
            .values(trouble=trouble, trouble_since=stored.trouble_since or at)
        )

    async def _stored(self) -> Verified:
        """Return the row, which is there from now on."""
        none = {**vars(Verified()), "open_commands": []}
        await self._connection.insert_new(history_verified, ["number"], {"number": _NUMBER, **none})
        return await self.get()
