"""Conditions on instances that are quarantined, for statements that count who holds what."""

from sqlalchemy import ColumnElement, cast, exists

from shoal.core.runs.quarantine import ItemConsumer, ItemKind
from shoal.sql.schema.tables import quarantine


def is_quarantined(item: ColumnElement[int], kind: ItemKind) -> ColumnElement[bool]:
    """Return the condition that masters have quarantined the thing with this id.

    A quarantined run holds nothing that others wait for, until it is tried again.
    """
    q = quarantine.c
    return exists().where(
        q.consumer == ItemConsumer.MASTERS, q.kind == kind, q.item == cast(item, q.item.type)
    )
