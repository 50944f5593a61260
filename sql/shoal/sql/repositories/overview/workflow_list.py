"""Lists of workflows: filtered, sorted and paged."""

import json
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    ScalarSelect,
    Select,
    Text,
    case,
    func,
    or_,
    select,
    tuple_,
    type_coerce,
)

from shoal.core.access.authorization import Visible
from shoal.core.definition.model import HEAD_TEXTS
from shoal.core.runs.filters import MOST_RANKED, WorkflowFilter
from shoal.core.runs.records import Place, StoredWorkflow, WorkflowOrder
from shoal.core.runs.states import WorkflowState
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import TooManyToSort
from shoal.sql.repositories.definitions.workflows import live_workflows, workflow_of
from shoal.sql.repositories.search.ranking import Position, page_of_ranked
from shoal.sql.schema import tables
from shoal.sql.schema.tables import schedule, workflow, workflow_instance
from shoal.sql.schema.types import UnreadableValue
from shoal.sql.statements.index_walks import behind
from shoal.sql.statements.rows import enough, leave_out, readable

_EVERY = WorkflowFilter(archived="any")
_C = workflow.c


class WorkflowList:
    """Reads the workflows that are not deleted, without their definitions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def page(
        self,
        wanted: WorkflowFilter = _EVERY,
        *,
        visible: Visible = None,
        order: WorkflowOrder = WorkflowOrder.NAME,
        after: Place | None = None,
        limit: int = 50,
    ) -> list[StoredWorkflow]:
        """Return workflows by name or latest change, from the place ``after`` on."""
        query = _filtered(live_workflows(), wanted, visible)
        if order is WorkflowOrder.NAME:
            query = query.order_by(tables.project.c.name, _C.name)
            place = tuple_(tables.project.c.name, _C.name)
            query = query if after is None else query.where(place > after)
        else:
            query = query.order_by(_C.updated_at.desc(), _C.id.desc())
            if after is not None:
                query = query.where(behind((_C.updated_at, _C.id), after))
        return await enough(
            lambda most: self._connection.rows(query.limit(most)),
            workflow_of,
            "workflow",
            limit,
            key="name",
        )

    async def ranked(
        self,
        wanted: WorkflowFilter = _EVERY,
        *,
        visible: Visible = None,
        order: WorkflowOrder,
        after: Position | None = None,
        limit: int = 50,
    ) -> tuple[list[StoredWorkflow], Position | None]:
        """Return workflows in an order that no index has, and the next position; None: the end.

        Raises TooManyToSort.
        """
        rank: ColumnElement[Any]
        match order:
            case WorkflowOrder.LAST_RUN:
                rank = _of_last_run(workflow_instance.c.logical_time)
            case WorkflowOrder.NEXT_FIRE:
                rank = _next_fire()
            case _:
                has_failed = func.coalesce(_last_state() == WorkflowState.FAILED, False)
                name = tables.project.c.name + "/" + _C.name
                rank = case((has_failed, "0 "), else_="1 ") + name
        query = (
            select(_C.id, rank.label("rank"))
            .join_from(workflow, tables.project)
            .where(_C.deleted_at.is_(None))
        )
        rows = await self._connection.rows(_filtered(query, wanted, visible).limit(MOST_RANKED + 1))
        if len(rows) > MOST_RANKED:
            raise TooManyToSort(order, MOST_RANKED)
        ranks = [
            (None if isinstance(row.rank, UnreadableValue) else row.rank, row.id) for row in rows
        ]
        found = page_of_ranked(ranks, order is not WorkflowOrder.LAST_RUN, after, limit)
        stored = await self._connection.rows(live_workflows().where(_C.id.in_(found.ids)))
        known = readable(stored, workflow_of, "workflow", leave_out, key="name")
        by_id = {one.id: one for one in known}
        return [by_id[one] for one in found.ids if one in by_id], found.next


def _filtered(query: Select[Any], wanted: WorkflowFilter, visible: Visible) -> Select[Any]:
    """Limit a query of workflows and their projects."""
    if wanted.project is not None:
        query = query.where(tables.project.c.name == wanted.project)
    if visible is not None:
        query = query.where(_C.project_id.in_(sorted(visible)))
    if wanted.search:
        text = wanted.search.lower()
        columns = (func.lower(_C.name), func.lower(_C.description))
        query = query.where(or_(*(one.contains(text, autoescape=True) for one in columns)))
    query = query.where(*(_has_label(key, value) for key, value in wanted.labels.items()))
    if wanted.archived != "any":
        is_archived = _C.archived_at.is_not(None)
        query = query.where(is_archived if wanted.archived == "true" else ~is_archived)
    for name in HEAD_TEXTS:
        if (value := getattr(wanted, name, None)) is not None:
            query = query.where(_C[name] == value)
    if wanted.state:
        query = query.where(_last_state().in_(sorted(wanted.state)))
    return query


def _has_label(key: str, value: str | None) -> ColumnElement[bool]:
    """Return whether the labels of a row have a key, with a value or any.

    Within JSON a quotation mark that is not escaped begins or ends a text, and a key holds nothing
    that is between two texts, so the search text matches only at a key.
    """
    wanted = (
        json.dumps(key) + ":" + ("" if value is None else json.dumps(value, ensure_ascii=False))
    )
    stored = type_coerce(_C.labels, Text)
    # LIKE would not tell capital letters from others on SQLite.
    return func.replace(stored, wanted, "") != stored


def _of_last_run(column: Column[Any]) -> ScalarSelect[Any]:
    """Return a column of the last run of a row of ``workflow``; NULL: it has no run."""
    run = workflow_instance.c
    return (
        select(column)
        .where(run.workflow_id == _C.id)
        .order_by(run.logical_time.desc(), run.id.desc())
        .limit(1)
        .scalar_subquery()
    )


def _last_state() -> ScalarSelect[str]:
    return _of_last_run(workflow_instance.c.state)


def _next_fire() -> ScalarSelect[Any]:
    """Return when a row of ``workflow`` fires next; NULL: it does not."""
    return (
        select(schedule.c.next_fire_at)
        .where(schedule.c.workflow_id == _C.id, schedule.c.next_fire_at.is_not(None))
        .order_by(schedule.c.next_fire_at)
        .limit(1)
        .scalar_subquery()
    )
