"""Split a text of SQL into its statements, every byte kept.

Statements end at semicolons, where those do not stand inside quotes, comments, parentheses or
blocks; and as the command lines of the databases have it: at the text that DELIMITER sets (MySQL,
MariaDB), at a line GO (SQL Server, where a semicolon ends nothing: a batch is sent whole), at a
line ``/`` (Oracle). What is not sure is refused; with a separator nothing is looked at but that.
"""

import re
from dataclasses import dataclass, field
from typing import NoReturn

from shoal.worker.types.sql.statements.blocks import NotSure, OpenStatement, OracleStatement
from shoal.worker.types.sql.statements.dialects import Blocks, Dialect
from shoal.worker.types.sql.statements.lexer import InvalidStatement, Lexer, Token, TokenKind

_REST = re.compile(r"[^\n]*")
_HINT = (
    "; where this statement ends is not sure: write `separator`, a text that ends each statement "
    "where it ends a line, such as ;; or //"
)
_NOTHING_BEHIND = re.compile(r"\s*(?:--.*)?")


@dataclass(frozen=True)
class Slice:
    """One statement: ``text`` stands at ``start`` of the whole. ``words`` are its first words,
    in capitals; none if they were not read.
    """

    start: int
    text: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class SqlScript:
    """A text taken apart. ``separators`` is what stands before, between and behind the statements:
    one more than those. All in their order are the text.
    """

    statements: tuple[Slice, ...]
    separators: tuple[str, ...]


def split(text: str, dialect: Dialect, separator: str = "") -> SqlScript:
    """Return the statements of ``text``. Raises InvalidStatement where one is not sure.

    ``separator``: ends a statement where it ends a line, whatever it stands in.
    """
    if separator:
        return _script(text, _ends_of_lines(text, separator))
    return _script(text, _Splitter(text, dialect).statements())


def _script(text: str, found: list[Slice]) -> SqlScript:
    ends = [0, *(one.start + len(one.text) for one in found)]
    starts = [*(one.start for one in found), len(text)]
    between = tuple(text[end:start] for end, start in zip(ends, starts, strict=True))
    return SqlScript(tuple(found), between)


def _ends_of_lines(text: str, separator: str) -> list[Slice]:
    found = []
    position = 0
    ending = re.compile(re.escape(separator) + r"[^\S\n]*(?:\n|\Z)")
    while position <= len(text):
        mark = ending.search(text, position)
        end, following = mark.span() if mark else (len(text), len(text) + 1)
        statement = text[position:end].strip()
        if statement:
            found.append(Slice(text.index(statement, position), statement))
        if mark and following == len(text):
            break
        position = following
    return found


@dataclass
class _Pending:
    """The statement that is being read."""

    statement: OpenStatement
    start: int = -1  # of its first token, comments included
    end: int = 0
    has_code: bool = False
    parentheses: list[int] = field(default_factory=list)  # where they were opened
    held: int = -1  # a semicolon inside parentheses


class _Splitter:
    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text, self._dialect = text, dialect
        self._lexer = Lexer(text, dialect)
        self._delimiter = ";"
        self._found: list[Slice] = []
        self._pending = self._new()

    def statements(self) -> list[Slice]:
        """Return all statements. Raises InvalidStatement."""
        position = 0
        while (token := self._lexer.next(position)) is not None:
            is_first = position == 0 or "\n" in self._text[position : token.start]
            position = self._command(token) if is_first else -1
            if position < 0:
                position = self._take(token)
        self._finish(len(self._text))
        return self._found

    def _new(self) -> _Pending:
        style = self._dialect.blocks if self._delimiter == ";" else Blocks.NONE
        return _Pending(OracleStatement() if style is Blocks.PLSQL else OpenStatement(style))

    # -- what ends statements --------------------------------------------------------------------

    def _command(self, token: Token) -> int:
        """Carry out a line that is for the splitter alone; return where the next one begins.

        Returns -1 if the token begins no such line.
        """
        word = self._text[token.start : token.end].upper()
        if word not in ("DELIMITER", "GO", "/"):
            return -1
        line = _REST.match(self._text, token.end)
        assert line is not None
        rest = line[0].strip()
        if word == "DELIMITER" and self._dialect.executable_comments and rest:
            if self._pending.has_code:
                self._refuse(token.start, "DELIMITER stands inside a statement")
            self._delimiter = rest
            self._finish(token.start)
            return line.end()
        if word == "GO" and self._dialect.blocks is Blocks.BATCH:
            if rest.isdigit():
                self._refuse(token.start, "GO with a number repeats the batch; write it out")
            if not _NOTHING_BEHIND.fullmatch(rest):
                return -1
        elif not (word == "/" and self._dialect.blocks is Blocks.PLSQL and not rest):
            return -1
        self._finish(token.start)
        return line.end()

    def _take(self, token: Token) -> int:
        if not self._lexer.is_inside and token.kind is not TokenKind.COMMENT:
            if self._delimiter != ";":
                if self._text.startswith(self._delimiter, token.start):
                    self._finish(token.start, sure=True)
                    return token.start + len(self._delimiter)
            elif self._ends_at(token):
                if self._pending.statement.keeps_semicolon:
                    self._add(token)
                self._finish(token.start)
                return token.end
        self._add(token)
        return token.end

    def _ends_at(self, token: Token) -> bool:
        if token.kind is not TokenKind.SIGN or self._text[token.start] != ";":
            return False
        if self._dialect.blocks is Blocks.BATCH:
            return False
        if self._pending.parentheses:
            self._pending.held = token.start
            return False
        try:
            return self._pending.statement.ends()
        except NotSure as doubt:
            self._refuse(self._pending.start, f"{doubt}{_HINT}")

    # -- one statement ---------------------------------------------------------------------------

    def _add(self, token: Token) -> None:
        pending, text = self._pending, self._text[token.start : token.end]
        if pending.start < 0:
            pending.start = token.start
        pending.end = token.end
        if token.kind is TokenKind.COMMENT:
            return
        pending.has_code = True
        if token.kind is TokenKind.SIGN:
            if text == "(":
                pending.parentheses.append(token.start)
            elif text == ")" and pending.parentheses:
                pending.parentheses.pop()
        seen = text if token.kind in (TokenKind.WORD, TokenKind.SIGN) else ""
        try:
            pending.statement.add(seen, is_word=token.kind is TokenKind.WORD)
        except NotSure as doubt:
            self._refuse(pending.start, f"{doubt}{_HINT}")

    def _finish(self, end: int, *, sure: bool = False) -> None:
        """Keep the pending statement, if there is one, and begin another."""
        pending, self._pending = self._pending, self._new()
        if not pending.has_code:
            return
        if not sure and end == len(self._text):
            if pending.held >= 0 and pending.parentheses:
                self._refuse(
                    pending.parentheses[0], "a parenthesis is opened here and never closed"
                )
            try:
                pending.statement.close()
            except NotSure as doubt:
                self._refuse(pending.start, f"{doubt}{_HINT}")
        text = self._text[pending.start : pending.end]
        self._found.append(Slice(pending.start, text, tuple(pending.statement.words)))

    def _refuse(self, position: int, reason: str) -> NoReturn:
        raise InvalidStatement(self._text, position, reason)
