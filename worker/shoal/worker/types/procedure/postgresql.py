"""Routines of PostgreSQL: overloaded, with defaults, called with named arguments."""

import json
from typing import Any

from shoal.worker.types.procedure.calls import Returned, TakeSet, rows_of, sets_of
from shoal.worker.types.procedure.kind import Argument
from shoal.worker.types.procedure.routines import Mode, Routine, RoutineParameter
from shoal.worker.types.sql.session import Session

RETURN_VALUE = "return_value"
_MODES = {"i": Mode.IN, "o": Mode.OUT, "b": Mode.INOUT, "v": Mode.IN}
_COLUMN = "t"  # of RETURNS TABLE: no parameter
_CURSOR = "refcursor"
_FIND = """
SELECT n.nspname, p.proname, p.prokind = 'f', p.proretset, format_type(p.prorettype, NULL),
    p.pronargdefaults, p.proargnames, p.proargmodes::text[],
    (SELECT array_agg(format_type(t, NULL) ORDER BY place)
     FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY u (t, place))
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.prokind IN ('p', 'f') AND p.proname = $1
AND CASE WHEN $2::text IS NULL THEN pg_function_is_visible(p.oid) ELSE n.nspname = $2 END
AND has_function_privilege(p.oid, 'EXECUTE') AND has_schema_privilege(n.oid, 'USAGE')
ORDER BY p.oid
"""


def find(session: Session, schema: str | None, name: str) -> list[Routine]:
    """See ``calls.Dialect``. Names are as the catalogue has them, else in lower case."""
    found = rows_of(session, _FIND, name, schema)
    if not found:
        found = rows_of(session, _FIND, name.lower(), schema and schema.lower())
    return [_routine(*row) for row in found]


def call(
    session: Session, routine: Routine, arguments: dict[str, Argument], take: TakeSet
) -> Returned:
    """See ``calls.Dialect``."""
    passed, values = _passed(session, routine, arguments)
    called = f"{session.quote(routine.name)}({', '.join(passed)})"
    if routine.returns is None:
        return _take_row(session, session.execute(f"CALL {called}", values), take)
    result = session.execute(f"SELECT * FROM {called}", values)  # noqa: S608 - quoted
    if routine.returns_rows:
        for one in sets_of(result):
            take(one)
        return Returned()
    returned = _take_row(session, result, take)
    if not any(one.comes_out for one in routine.parameters) and len(returned.values) == 1:
        returned.values = {RETURN_VALUE: next(iter(returned.values.values()))}
    if routine.returns == "void":
        returned.values.clear()
    return returned


def _passed(
    session: Session, routine: Routine, arguments: dict[str, Argument]
) -> tuple[list[str], list[Any]]:
    passed: list[str] = []
    values: list[Any] = []
    for parameter in routine.parameters:
        key = routine.key(parameter)
        if parameter.mode is Mode.OUT and routine.returns is not None:
            continue  # a function returns it, and takes no place for it
        if parameter.goes_in and key not in arguments:
            continue  # it has a default
        text = "NULL"
        if parameter.goes_in:
            text = session.placeholder(len(values), "")
            values.append(_value(arguments[key], parameter.type_name))
        text += f"::{parameter.type_name}"
        passed.append(f"{session.quote(parameter.name)} => {text}" if parameter.name else text)
    return passed, values


def _value(value: Argument, type_name: str) -> Any:
    if isinstance(value, bool | int | float) and type_name in ("json", "jsonb"):
        return json.dumps(value)
    return value


def _take_row(session: Session, result: Any, take: TakeSet) -> Returned:
    """Take the only row, and what the cursors in it point to."""
    columns = list(result.columns)
    row = next(iter(result), None)
    result.close()
    returned = Returned()
    cursors = []
    for column, value in zip(columns, row or [None] * len(columns), strict=True):
        if column.type_name == _CURSOR and value is not None:
            cursors.append(value)
        else:
            returned.values[column.name] = value
    for cursor in cursors:
        name = '"' + cursor.replace('"', '""') + '"'
        for one in sets_of(session.execute(f"FETCH ALL FROM {name}")):
            take(one)
    return returned


def _routine(
    schema: str,
    name: str,
    is_function: bool,
    returns_set: bool,
    returns: str,
    defaults: int,
    names: list[str] | None,
    modes: list[str] | None,
    types: list[str] | None,
) -> Routine:
    types = types or []
    names, modes = names or [""] * len(types), modes or ["i"] * len(types)
    inputs = sum(mode not in ("o", _COLUMN) for mode in modes)
    place = 0
    parameters = []
    for parameter, mode, type_name in zip(names, modes, types, strict=True):
        if mode == _COLUMN:
            continue
        goes_in = mode != "o"
        place += goes_in
        optional = goes_in and place > inputs - defaults
        parameters.append(RoutineParameter(parameter or "", _MODES[mode], type_name, optional))
    return Routine(
        f"{schema}.{name}",
        tuple(parameters),
        returns if is_function else None,
        returns_rows=is_function and returns_set,
    )
