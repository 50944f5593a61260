"""Routines of MariaDB and MySQL: a name is of one procedure and one function of a database.

What a procedure hands out arrives in variables of the session, and is read from there.
"""

from typing import Any

from shoal.worker.types.procedure.calls import Returned, TakeSet, rows_of, sets_of
from shoal.worker.types.procedure.kind import Argument
from shoal.worker.types.procedure.postgresql import RETURN_VALUE
from shoal.worker.types.procedure.routines import Mode, Routine, RoutineParameter
from shoal.worker.types.sql.session import Session

_ROUTINES = """
SELECT routine_schema, routine_name, routine_type, dtd_identifier
FROM information_schema.routines
WHERE routine_schema = {schema} AND routine_name = {name} ORDER BY routine_type DESC
"""
_PARAMETERS = """
SELECT parameter_mode, parameter_name, dtd_identifier FROM information_schema.parameters
WHERE specific_schema = {} AND specific_name = {} AND routine_type = {} AND ordinal_position > 0
ORDER BY ordinal_position
"""
_VARIABLE = "@shoal_argument_{}"


def find(session: Session, schema: str | None, name: str) -> list[Routine]:
    """See ``calls.Dialect``. If a procedure and a function have the name, the procedure."""
    marks = [session.placeholder(number, "") for number in range(3)]
    if schema is None:
        statement = _ROUTINES.format(schema="DATABASE()", name=marks[0])
        found = rows_of(session, statement, name)
    else:
        statement = _ROUTINES.format(schema=marks[0], name=marks[1])
        found = rows_of(session, statement, schema, name)
    routines = []
    for owner, called, kind, returns in found[:1]:
        parameters = rows_of(session, _PARAMETERS.format(*marks), owner, called, kind)
        routines.append(
            Routine(
                f"{owner}.{called}",
                tuple(
                    RoutineParameter(p or "", Mode(mode or "IN"), t) for mode, p, t in parameters
                ),
                returns if kind == "FUNCTION" else None,
            )
        )
    return routines


def call(
    session: Session, routine: Routine, arguments: dict[str, Argument], take: TakeSet
) -> Returned:
    """See ``calls.Dialect``."""
    passed: list[str] = []
    values: list[Any] = []
    variables: dict[str, str] = {}
    for number, parameter in enumerate(routine.parameters):
        key = routine.key(parameter)
        if parameter.comes_out:
            variables[key] = _VARIABLE.format(number)
            start = session.placeholder(0, "")
            statement = f"SET {variables[key]} = {start}"
            session.execute(statement, [arguments.get(key)]).close()
            passed.append(variables[key])
        else:
            passed.append(session.placeholder(len(values), ""))
            values.append(arguments[key])
    called = f"{session.quote(routine.name)}({', '.join(passed)})"
    if routine.returns is not None:
        ((value,),) = rows_of(session, f"SELECT {called}", *values)
        return Returned({RETURN_VALUE: value})
    for one in sets_of(session.execute(f"CALL {called}", values)):
        take(one)
    if not variables:
        return Returned()
    (row,) = rows_of(session, f"SELECT {', '.join(variables.values())}")
    return Returned(dict(zip(variables, row, strict=True)))
