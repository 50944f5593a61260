"""Labels of runs: what people sort them by."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, insert, select

from shoal.core.definition.labels import MOST_OF_RUN
from shoal.sql.driver.connection import Connection, batched
from shoal.sql.errors import InvalidValue, NotFound
from shoal.sql.repositories.events import Events, NewEvent
from shoal.sql.schema.tables import instance_label, project, workflow, workflow_instance
from shoal.sql.statements.value_sets import Among, numbers

INSERT_LABEL = insert(instance_label)
_C = instance_label.c
_OF = select(_C.workflow_instance_id, _C.key, _C.value).where(
    Among(_C.workflow_instance_id, numbers("ids"))
)
_DELETE = delete(instance_label).where(
    _C.workflow_instance_id == bindparam("of"), _C.key == bindparam("named")
)
_IDS_PER_QUERY = 500


class Labels:
    """The ``instance_label`` table; new instances bring theirs with them."""

    def __init__(self, connection: Connection, events: Events) -> None:
        self._connection = connection
        self._events = events

    async def of(self, ids: Collection[int]) -> dict[int, dict[str, str]]:
        """Return the labels of instances; one without any is missing."""
        found: dict[int, dict[str, str]] = {}
        for chunk in batched(sorted(ids), _IDS_PER_QUERY):
            for row in await self._connection.rows(_OF, {"ids": chunk}):
                found.setdefault(row.workflow_instance_id, {})[row.key] = row.value
        return {one: dict(sorted(labels.items())) for one, labels in found.items()}

    async def change(
        self, instance_id: int, changes: Mapping[str, str | None], at: datetime
    ) -> dict[str, str]:
        """Set labels of an instance, and remove those of which the value is None.

        Return all that it has then, which an event tells if anything has changed. Raises NotFound,
        and InvalidValue for too many.
        """
        c = workflow_instance.c
        # Locked: what two callers add at once must not be too many together.
        query = (
            select(c.project_id, c.created_at, project.c.name.label("project"), workflow.c.name)
            .join_from(workflow_instance, project, c.project_id == project.c.id)
            .join(workflow, c.workflow_id == workflow.c.id)
            .where(c.id == instance_id)
            .with_for_update(of=workflow_instance)
        )
        row = await self._connection.first(query)
        if row is None:
            raise NotFound("workflow instance", instance_id)
        labels = (await self.of([instance_id])).get(instance_id, {})
        changed = {k: v for k, v in changes.items() if labels.get(k) != v}
        wanted = {k: v for k, v in {**labels, **changed}.items() if v is not None}
        if len(wanted) > MOST_OF_RUN:
            raise InvalidValue(
                f"a run has {MOST_OF_RUN} labels at most, and this makes {len(wanted)}"
            )
        gone = [{"of": instance_id, "named": key} for key in changed if key in labels]
        added = {key: value for key, value in changed.items() if value is not None}
        await self._connection.change(
            [
                (_DELETE, gone),
                (INSERT_LABEL, label_values(instance_id, row.project_id, row.created_at, added)),
            ]
        )
        found = dict(sorted(wanted.items()))
        if changed.keys() & {*labels, *added}:
            data = {"workflow": row.name, "labels": found}
            event = NewEvent(at, "instance.labels", row.project, data, instance_id)
            await self._events.add([event])
        return found


def label_values(
    instance_id: int, project_id: int, created_at: datetime, labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the rows of an instance's labels."""
    return [
        {
            "workflow_instance_id": instance_id,
            "key": key,
            "value": value,
            "project_id": project_id,
            "created_at": created_at,
        }
        for key, value in sorted(labels.items())
    ]
