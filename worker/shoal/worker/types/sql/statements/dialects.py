"""How the databases write quotes, comments and blocks; as far as it decides where text ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from shoal.core.data_sources import SourceKind


class Blocks(StrEnum):
    """Which statements hold others, with semicolons that end no statement."""

    NONE = "none"
    TRIGGER = "trigger"  # SQLite: CREATE TRIGGER … BEGIN … END
    ATOMIC = "atomic"  # PostgreSQL: BEGIN ATOMIC … END; other bodies are quoted
    ROUTINE = "routine"  # MariaDB, MySQL, Trino: CREATE PROCEDURE … BEGIN … END
    PLSQL = "plsql"  # Oracle: units, packages, anonymous blocks
    BATCH = "batch"  # SQL Server: a batch is sent whole, GO ends it


class Nested(StrEnum):
    """What ``/*`` inside a comment means."""

    YES = "yes"  # it opens a comment inside the comment
    NO = "no"  # nothing
    UNSURE = "unsure"  # it depends on version or settings: refused


@dataclass(frozen=True)
class Dialect:
    """What the lexer and the splitter need to know of one kind of database.

    ``strings`` and ``identifiers`` are the characters that open and close them. ``backslash`` are
    the quotes inside of which a backslash keeps the next character from ending them.
    """

    blocks: Blocks = Blocks.NONE
    strings: str = "'"
    identifiers: str = '"'
    backslash: str = ""
    brackets: bool = False  # [identifier]
    bracket_escape: bool = False  # ]] inside it
    escape_strings: bool = False  # E'…' with backslashes
    raw_strings: bool = False  # r'…' without
    quoted_by_choice: bool = False  # q'[…]'
    dollar_quotes: bool = False  # $tag$…$tag$
    hash_comments: bool = False
    dashes_need_space: bool = False  # -- opens a comment only before white space
    executable_comments: bool = False  # /*! … */ is run
    nested: Nested = Nested.NO


_MYSQL = Dialect(
    Blocks.ROUTINE,
    strings="'\"",
    identifiers="`",
    backslash="'\"",
    hash_comments=True,
    dashes_need_space=True,
    executable_comments=True,
)
_HIVE = Dialect(
    strings="'\"", identifiers="`", backslash="'\"", raw_strings=True, nested=Nested.UNSURE
)

DIALECTS: Mapping[SourceKind, Dialect] = {
    SourceKind.SQLITE: Dialect(Blocks.TRIGGER, identifiers='"`', brackets=True),
    SourceKind.DUCKDB: Dialect(escape_strings=True, dollar_quotes=True, nested=Nested.UNSURE),
    SourceKind.POSTGRESQL: Dialect(
        Blocks.ATOMIC, escape_strings=True, dollar_quotes=True, nested=Nested.YES
    ),
    SourceKind.MYSQL: _MYSQL,
    SourceKind.MARIADB: _MYSQL,
    SourceKind.SQLSERVER: Dialect(
        Blocks.BATCH, brackets=True, bracket_escape=True, nested=Nested.YES
    ),
    SourceKind.ORACLE: Dialect(Blocks.PLSQL, quoted_by_choice=True),
    SourceKind.CLICKHOUSE: Dialect(
        identifiers='"`',
        backslash="'\"`",
        dollar_quotes=True,
        hash_comments=True,
        nested=Nested.UNSURE,
    ),
    SourceKind.TRINO: Dialect(Blocks.ROUTINE, nested=Nested.UNSURE),
    SourceKind.HIVE: _HIVE,
    SourceKind.SPARK: _HIVE,
}
