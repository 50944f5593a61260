"""Whether a database is one that Shoal can work with, examined before its schema is migrated.

A store that something else has made, or that can hold less than Shoal writes, would fail later, in
the middle of a run. Each trouble is one sentence that names what to do.
"""

import re
from collections.abc import Collection, Sequence

from sqlalchemy import Connection, inspect, text

from shoal.sql.errors import DatabaseUnsuitable

VERSION_TABLE = "shoal_revision"
# Of what a PostgreSQL session is given if its URL names none (see ``driver/postgresql/pool.py``).
_USUAL_SEARCH_PATH = '"$user", public'
_NAMED = 5  # tables
_LONGEST_VALUE = 40  # characters
_REVISION = re.compile(r"\d{4}")

_SQLITE_TABLES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%'"
    " ESCAPE '\\' ORDER BY name"
)
# What extensions bring (PostGIS, pg_stat_statements) belongs to no application.
_POSTGRESQL_TABLES = (
    "SELECT relname FROM pg_class AS one WHERE relkind IN ('r', 'p', 'v', 'm', 'f')"
    " AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
    " AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_class'::regclass"
    " AND objid = one.oid AND deptype = 'e') ORDER BY relname"
)
_SCHEMAS_OF_SHOAL = (
    "SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE relname = :table AND relkind IN ('r', 'p') ORDER BY nspname"
)


def find_revision(connection: Connection) -> str | None:
    """Return the revision of the database's schema; None: it is empty.

    Raises DatabaseUnsuitable.
    """
    is_postgresql = connection.dialect.name == "postgresql"
    if is_postgresql:
        _require_unicode(connection)
        _require_schema(connection)
    tables = _names(connection, _POSTGRESQL_TABLES if is_postgresql else _SQLITE_TABLES)
    if VERSION_TABLE in tables:
        return _stored_revision(connection, tables)
    if tables:
        raise DatabaseUnsuitable(
            f"the database holds tables of another application ({_listed(tables)}) and none of "
            "Shoal's; give Shoal a database without tables, or correct the setting `database_url`"
        )
    if is_postgresql:
        _require_new_schema(connection)
    return None


def require_tables(connection: Connection, wanted: Collection[str]) -> None:
    """Raise DatabaseUnsuitable unless the schema has the tables that its revision says it has."""
    query = _POSTGRESQL_TABLES if connection.dialect.name == "postgresql" else _SQLITE_TABLES
    if missing := sorted(set(wanted) - set(_names(connection, query))):
        raise DatabaseUnsuitable(
            f"the database lacks tables that its revision should have ({_listed(missing)}); "
            "restore it from a copy"
        )


def _require_unicode(connection: Connection) -> None:
    encoding = connection.scalar(text("SHOW server_encoding"))
    if encoding != "UTF8":
        raise DatabaseUnsuitable(
            f"the database has the encoding {encoding}, which cannot hold all characters; Shoal "
            "needs UTF8. Create one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and "
            "move the rows of an existing cluster there with pg_dump and pg_restore"
        )


def _require_schema(connection: Connection) -> None:
    if connection.scalar(text("SELECT current_schema()")) is None:
        path = _search_path(connection)
        raise DatabaseUnsuitable(
            f"no schema of the search path {path} exists, or this user may use none; create one, "
            "or name it in the database URL: ?options=-csearch_path%3DNAME"
        )


def _require_new_schema(connection: Connection) -> None:
    """Refuse to begin anew beside tables of Shoal's, and where nothing can be created."""
    if _search_path(connection) == _USUAL_SEARCH_PATH:
        schemas = _names(connection, _SCHEMAS_OF_SHOAL, table=VERSION_TABLE)
        if schemas:
            raise DatabaseUnsuitable(
                f"Shoal's tables are in the schema {_listed(schemas)} of this database, which is "
                f"not on the search path {_USUAL_SEARCH_PATH}; name it in the database URL: "
                f"?options=-csearch_path%3D{_cut(schemas[0])}"
            )
    row = connection.execute(
        text("SELECT current_schema() AS name, has_schema_privilege(current_schema(), 'CREATE')")
    ).one()
    if not row[1]:
        raise DatabaseUnsuitable(
            f"this user may not create tables in the schema {_cut(row[0])}; as its owner, "
            f"GRANT CREATE ON SCHEMA {_cut(row[0])} to it, or make it the database's owner"
        )


def _stored_revision(connection: Connection, tables: Sequence[str]) -> str | None:
    columns = {column["name"] for column in inspect(connection).get_columns(VERSION_TABLE)}
    if "version_num" not in columns:
        raise _broken("has no column version_num")
    found = list(connection.scalars(text(f"SELECT version_num FROM {VERSION_TABLE} LIMIT 3")))  # noqa: S608 - a constant
    if not found:
        if others := [name for name in tables if name != VERSION_TABLE]:
            raise _broken(f"is empty, but there are tables ({_listed(others)})")
        return None
    if len(found) > 1:
        raise _broken(f"has several rows ({_listed([str(one) for one in found])})")
    [revision] = found
    if not isinstance(revision, str) or _REVISION.fullmatch(revision) is None:
        raise _broken(f"names the revision {_cut(str(revision))!r}, which Shoal never had")
    return revision


def _broken(trouble: str) -> DatabaseUnsuitable:
    return DatabaseUnsuitable(
        f"the table {VERSION_TABLE}, which holds the revision of the database's schema, {trouble}; "
        "restore the database from a copy"
    )


def _search_path(connection: Connection) -> str:
    return str(connection.scalar(text("SHOW search_path")))


def _names(connection: Connection, query: str, **values: str) -> list[str]:
    return [str(name) for name in connection.scalars(text(query), values)]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(map(_cut, names[:_NAMED])) + more


def _cut(value: str) -> str:
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}…"
