"""How the databases write quotes, comments and blocks; as far as it decides where text ends."""

from dataclasses import dataclass
from enum import StrEnum


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
