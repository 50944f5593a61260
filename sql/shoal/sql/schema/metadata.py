"""What all tables share: their naming, their ids, and states as literal text."""

from enum import StrEnum
from typing import Any

from sqlalchemy import Column, ColumnElement, MetaData, literal_column

from shoal.sql.schema.types import Id

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def row_id() -> Column[int]:
    """Return the column of a table that numbers its rows."""
    return Column("id", Id, primary_key=True)


def literals(values: frozenset[StrEnum] | frozenset[Any]) -> list[ColumnElement[str]]:
    """Return state names as literal SQL, in a fixed order."""
    return [literal_column(f"'{value}'") for value in sorted(values)]
