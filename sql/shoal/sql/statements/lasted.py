"""How long something took, as a number of seconds that both databases can compare."""

from typing import Any

from sqlalchemy import Column, Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.functions import FunctionElement


class Lasted(FunctionElement[float]):
    """``Lasted(end, start)``: the seconds between two instants; NULL if one of them is."""

    name = "lasted"
    type = Float()
    inherit_cache = True

    def __init__(self, end: ColumnElement[Any], start: Column[Any]) -> None:
        super().__init__(end, start)


@compiles(Lasted, "sqlite")
def _sqlite(element: Lasted, compiler: SQLCompiler, **options: Any) -> str:
    end, start = (compiler.process(one, **options) for one in element.clauses)
    return f"(({end} - {start}) / 1000000.0)"  # stored as microseconds


@compiles(Lasted, "postgresql")
def _postgresql(element: Lasted, compiler: SQLCompiler, **options: Any) -> str:
    end, start = (compiler.process(one, **options) for one in element.clauses)
    return f"CAST(extract(epoch FROM ({end} - {start})) AS double precision)"
