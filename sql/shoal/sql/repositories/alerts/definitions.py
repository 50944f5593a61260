"""Rules, receivers and channels of projects, by name; and silences."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, delete, insert, select, update

from shoal.core.alerts.records import AlertSilence, DefinitionKind, StoredAlertDefinition
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import NotFound
from shoal.sql.repositories.alerts.jobs import AlertJobs
from shoal.sql.repositories.definitions.projects import Projects
from shoal.sql.schema.tables import alert_definition, alert_silence, project
from shoal.sql.statements.rows import enough, leave_out, readable, record_of, require_numbers

_D, _S = alert_definition.c, alert_silence.c
_DefinitionList = list[StoredAlertDefinition]


class AlertDefinitions:
    """The tables ``alert_definition`` and ``alert_silence``. Every change is counted."""

    def __init__(self, connection: Connection, projects: Projects, jobs: AlertJobs) -> None:
        self._connection, self._projects, self._jobs = connection, projects, jobs

    async def put(
        self,
        home: str,
        kind: DefinitionKind,
        name: str,
        spec: Mapping[str, Any],
        at: datetime,
    ) -> tuple[StoredAlertDefinition, bool]:
        """Make or change a definition; return it and whether it is new. Raises NotFound."""
        owner = await self._projects.get(home)
        row = await self._connection.first(
            _named(home, kind, name).with_for_update(of=alert_definition)
        )
        if row is None:
            values = {"project_id": owner.id, "kind": kind, "name": name, "version": 1}
            await self._connection.execute(
                insert(alert_definition).values(
                    **values, spec=dict(spec), created_at=at, updated_at=at
                )
            )
        elif row.spec != dict(spec):
            await self._connection.execute(
                update(alert_definition)
                .where(_D.id == row.id)
                .values(spec=dict(spec), version=row.version + 1, updated_at=at)
            )
        await self._jobs.note_change()
        return await self.get(home, kind, name), row is None

    async def get(self, home: str, kind: DefinitionKind, name: str) -> StoredAlertDefinition:
        """Return a definition. Raises NotFound."""
        row = await self._connection.first(_named(home, kind, name))
        if row is None:
            raise NotFound(f"alert {kind}", f"{home}/{name}")
        return readable([row], _definition, f"alert {kind}")[0]

    async def list(
        self, home: str, kind: DefinitionKind, after: str | None = None, limit: int = 50
    ) -> _DefinitionList:
        """Return a project's definitions of a kind by name, behind ``after``."""
        query = _definitions().where(project.c.name == home, _D.kind == kind).order_by(_D.name)
        if after is not None:
            query = query.where(_D.name > after)
        return await enough(
            lambda most: self._connection.rows(query.limit(most)),
            _definition,
            f"alert {kind}",
            limit,
        )

    async def all(self) -> _DefinitionList:
        """Return those of all projects; what cannot be read is left out."""
        rows = await self._connection.rows(_definitions().order_by(_D.id))
        return readable(rows, _definition, "alert definition", leave_out)

    async def delete(self, home: str, kind: DefinitionKind, name: str) -> None:
        """Delete a definition, also one that cannot be read. Raises NotFound."""
        row = await self._connection.first(_named(home, kind, name))
        if row is None:
            raise NotFound(f"alert {kind}", f"{home}/{name}")
        await self._connection.execute(delete(alert_definition).where(_D.id == row.id))
        await self._jobs.note_change()

    # -- silences ---------------------------------------------------------------------------------

    async def silence(
        self,
        home: str,
        workflow: str,
        task: str,
        rule: str,
        since: datetime,
        until: datetime,
        reason: str,
        by: str,
    ) -> AlertSilence:
        """Make a silence. Raises NotFound."""
        owner = await self._projects.get(home)
        values = {
            "project_id": owner.id,
            "workflow": workflow,
            "task": task,
            "rule": rule,
            "since": since,
            "until": until,
            "reason": reason,
            "created_by": by,
        }
        made = await self._connection.changed(insert(alert_silence).values(values).returning(_S.id))
        await self._jobs.note_change()
        return await self.get_silence(home, made[0].id)

    async def get_silence(self, home: str, silence_id: int) -> AlertSilence:
        """Return a silence. Raises NotFound."""
        query = _silences().where(project.c.name == home, _S.id == silence_id)
        row = await self._connection.first(query)
        if row is None:
            raise NotFound("alert silence", f"{home}/{silence_id}")
        return readable([row], _silence, "alert silence")[0]

    async def silences(
        self, home: str | None, now: datetime, before: int | None = None, limit: int = 500
    ) -> Sequence[AlertSilence]:
        """Return silences that are not over, newest first: of a project, or None: of all."""
        query = _silences().where(_S.until > now).order_by(_S.id.desc())
        if home is not None:
            query = query.where(project.c.name == home)
        if before is not None:
            query = query.where(_S.id < before)
        rows = await self._connection.rows(query.limit(limit))
        return readable(rows, _silence, "alert silence", leave_out)

    async def end_silence(self, home: str, silence_id: int) -> None:
        """Delete a silence. Raises NotFound."""
        found = await self.get_silence(home, silence_id)
        await self._connection.execute(delete(alert_silence).where(_S.id == found.id))
        await self._jobs.note_change()


def _definitions() -> Select[Any]:
    return select(alert_definition, project.c.name.label("project")).join_from(
        alert_definition, project
    )


def _named(home: str, kind: DefinitionKind, name: str) -> Select[Any]:
    return _definitions().where(project.c.name == home, _D.kind == kind, _D.name == name)


def _definition(row: Row[Any]) -> StoredAlertDefinition:
    require_numbers(row, "version")
    return record_of(StoredAlertDefinition, row, kind=DefinitionKind(row.kind))


def _silences() -> Select[Any]:
    return select(alert_silence, project.c.name.label("project")).join_from(alert_silence, project)


def _silence(row: Row[Any]) -> AlertSilence:
    return record_of(AlertSilence, row, by=row.created_by)
