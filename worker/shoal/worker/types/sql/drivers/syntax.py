"""Syntax that drivers share: names in quotes, and the first words of a statement."""

import re
from collections.abc import Collection

_BLANK = r"\s+|\("
_SKIPPED = re.compile(rf"(?:{_BLANK}|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
# MySQL runs what stands in /*! */, and MariaDB what stands in /*M! */.
_MYSQL_SKIPPED = re.compile(rf"(?:{_BLANK}|--(?=\s)[^\n]*|#[^\n]*|/\*M?!\d*|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_]+")
# Statements that change nothing, whatever the database. A function that one calls may.
_READING = {"SELECT", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "DESC"}
_ANALYZE = re.compile(r"\bANALY[SZ]E\b", re.IGNORECASE)


def first_words(statement: str, count: int, *, mysql: bool = False) -> tuple[str, ...]:
    """Return the first words, at most ``count``, in capitals."""
    skipped = _MYSQL_SKIPPED if mysql else _SKIPPED
    words: list[str] = []
    position = 0
    while len(words) < count:
        blank = skipped.match(statement, position)
        position = blank.end() if blank else position
        word = _WORD.match(statement, position)
        if word is None:
            break
        words.append(word.group().upper())
        position = word.end()
    return tuple(words)


def reads(statement: str, *, mysql: bool = False, also: Collection[str] = ()) -> bool:
    """Return whether a statement begins like one that only reads.

    ``also``: further first words of such statements, in capitals.
    """
    first = "".join(first_words(statement, 1, mysql=mysql))
    return (first in _READING or first in also) and not (
        first == "EXPLAIN" and runs_what_it_explains(statement)
    )


def runs_what_it_explains(explain: str) -> bool:
    """Return whether an EXPLAIN may run its statement, as EXPLAIN ANALYZE does."""
    return _ANALYZE.search(explain) is not None


def quoted(identifier: str, mark: str = '"') -> str:
    """Return a name in quotes, standard SQL's if no other; the parts of ``a.b`` on their own."""
    return ".".join(mark + part.replace(mark, mark * 2) + mark for part in identifier.split("."))
