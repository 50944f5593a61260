"""Find the tokens of a text of SQL: where quotes, comments and words begin and end.

Linear in the length of the text, whatever it holds. White space yields no token.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import NoReturn

from shoal.core.errors import ShoalError
from shoal.worker.types.sql.statements.dialects import Dialect, Nested

NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"  # as that of any parameter
PLACEHOLDER = re.compile(r"\$\{(" + NAME + r")\}")

_QUOTE = re.compile(r"['\"`\[]")
_COMMENT_MARK = re.compile(r"/\*|\*/")
_EXECUTABLE = re.compile(r"/\*M?!\d{0,6}")
_OPENS_NOTHING = (
    "${ and $[ open no parameter and no date here. Definitions read $${ as ${, and $$[ as $[: for "
    "a literal such as $${…}$$ write $$${…}$$ or $json${…}$json$"
)
_NOT_CLOSED = "{} is opened here and never closed"
_CLOSING = {"[": "]", "(": ")", "{": "}", "<": ">"}  # of Oracle's q'[…]'


class InvalidStatement(ShoalError, ValueError):
    """A text that cannot be taken apart for sure; the message says where and what to write."""

    def __init__(self, text: str, position: int, reason: str) -> None:
        self.position, self.reason = position, reason
        self.line = text.count("\n", 0, position) + 1
        self.column = position - text.rfind("\n", 0, position)
        super().__init__(f"line {self.line}, column {self.column}: {reason}")


class TokenKind(StrEnum):
    """What a token is, as far as statements and placeholders need it."""

    WORD = "word"  # keyword, name or number, as written
    STRING = "string"
    IDENTIFIER = "identifier"  # quoted
    COMMENT = "comment"
    PLACEHOLDER = "placeholder"  # ${name}
    OPEN = "open"  # /*! of a comment that is run
    CLOSE = "close"  # its end
    SIGN = "sign"  # any other character


@dataclass(frozen=True, slots=True)
class Token:
    """One token: ``text[start:end]``. Between its quotes is ``text[inner:outer]``."""

    kind: TokenKind
    start: int
    end: int
    inner: int = 0
    outer: int = 0


class Lexer:
    """Reads one text once, from its beginning."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text, self._dialect = text, dialect
        self._match = _pattern(dialect).match
        self._open: list[int] = []  # where comments that are run begin

    def tokens(self) -> Iterator[Token]:
        """Yield all tokens. Raises InvalidStatement where one is not closed."""
        position = 0
        while (token := self.next(position)) is not None:
            position = token.end
            yield token

    @property
    def is_inside(self) -> bool:
        """Whether the last token was inside a comment that is run."""
        return bool(self._open)

    def next(self, position: int) -> Token | None:
        """Return the first token from ``position`` on, None at the end of the text.

        Raises InvalidStatement where it is not closed, or could be read in two ways.
        """
        found = self._match(self._text, position)
        if found is None:
            if self._open:
                self._refuse(self._open[-1], _NOT_CLOSED.format("a comment that is run (/*!)"))
            return None
        group = found.lastgroup
        assert group is not None
        start, end = found.span(group)
        if group in _PLAIN:
            return Token(_PLAIN[group], start, end)
        return self._special(group, start, end)

    def _special(self, group: str, start: int, end: int) -> Token:
        text = self._text
        match group:
            case "string" | "identifier":
                inner = _QUOTE.search(text, start)
                assert inner is not None
                return Token(TokenKind(group), start, end, inner.end(), end - 1)
            case "line":
                if "\r" in text[start : end - 1]:
                    self._refuse(start, "a carriage return inside a comment; end lines with \\n")
                return Token(TokenKind.COMMENT, start, end)
            case "block":
                return self._block(start)
            case "dollar":
                return self._closed_by(text[start:end], start, end)
            case "choice":
                opened = text[end - 1]
                return self._closed_by(_CLOSING.get(opened, opened) + "'", start, end)
            case "unsure":
                reason = "a raw string with a backslash or a doubled quote in it: where it ends "
                self._refuse(start, reason + "depends on the database; write it without r")
            case "unclosed":
                self._refuse(start, _NOT_CLOSED.format(f"a quote ({text[start:end]})"))
        if text.startswith(("${", "$["), start):
            self._refuse(start, _OPENS_NOTHING)
        if self._open and text.startswith("*/", start):
            self._open.pop()
            return Token(TokenKind.CLOSE, start, start + 2)
        return Token(TokenKind.SIGN, start, end)

    def _closed_by(self, closing: str, start: int, inner: int) -> Token:
        outer = self._text.find(closing, inner)
        if outer < 0:
            self._refuse(start, _NOT_CLOSED.format(f"a quote ({self._text[start:inner]})"))
        return Token(TokenKind.STRING, start, outer + len(closing), inner, outer)

    def _block(self, start: int) -> Token:
        executable = _EXECUTABLE.match(self._text, start)
        if self._dialect.executable_comments and executable is not None:
            self._open.append(start)
            return Token(TokenKind.OPEN, start, executable.end())
        depth, position = 1, start + 2
        while depth:
            mark = _COMMENT_MARK.search(self._text, position)
            if mark is None:
                self._refuse(start, _NOT_CLOSED.format("a comment"))
            position = mark.end()
            if mark[0] == "*/":
                depth -= 1
            elif self._dialect.nested is Nested.YES:
                depth += 1
            elif self._dialect.nested is Nested.UNSURE:
                self._refuse(mark.start(), "a comment inside a comment; take one of them away")
            else:
                position = mark.start() + 1  # the star may be that of a closing mark
        return Token(TokenKind.COMMENT, start, position)

    def _refuse(self, position: int, reason: str) -> NoReturn:
        raise InvalidStatement(self._text, position, reason)


_PLAIN = {"word": TokenKind.WORD, "placeholder": TokenKind.PLACEHOLDER}


@cache
def _pattern(dialect: Dialect) -> re.Pattern[str]:
    """Return the pattern of one token with the white space before it. No part backtracks."""
    strings = [_quoted(quote, dialect) for quote in dialect.strings]
    names = [_quoted(quote, dialect) for quote in dialect.identifiers]
    lines = [r"--(?=\s|\Z)[^\n]*+" if dialect.dashes_need_space else r"--[^\n]*+"]
    first: list[str] = []
    if dialect.escape_strings:
        strings.insert(0, r"[eE]'(?:[^'\\]++|\\.|'')*+'")
    if dialect.raw_strings:
        strings.insert(0, r"[rR](?:'[^'\\]*+'(?!')|\"[^\"\\]*+\"(?!\"))")
    if dialect.brackets:
        names.append(r"\[[^\]]*+(?:\]\][^\]]*+)*+\]" if dialect.bracket_escape else r"\[[^\]]*+\]")
    if dialect.hash_comments:
        lines.append(r"\#[^\n]*+")
    if dialect.quoted_by_choice:
        first.append(r"(?P<choice>[nN]?[qQ]'\S)")
    if dialect.dollar_quotes:
        first.append(r"(?P<dollar>\$(?:[^\W\d]\w*+)?\$)")
    return re.compile(
        r"\s*+(?:"
        + "|".join(
            [
                *first,
                f"(?P<line>{'|'.join(lines)})",
                r"(?P<block>/\*)",
                rf"(?P<placeholder>\$\{{{NAME}\}})",
                f"(?P<string>{'|'.join(strings)})",
                f"(?P<identifier>{'|'.join(names)})",
                *([r"(?P<unsure>[rR]['\"])"] if dialect.raw_strings else []),
                r"(?P<word>\w(?:\w|\$(?!\{))*+)" if dialect.dollar_quotes else r"(?P<word>\w++)",
                f"(?P<unclosed>[{re.escape(_opening_quotes(dialect))}])",
                "(?P<sign>.)",
            ]
        )
        + ")",
        re.DOTALL,
    )


def _quoted(quote: str, dialect: Dialect) -> str:
    if quote in dialect.backslash:
        return rf"{quote}(?:[^{quote}\\]++|\\.|{quote}{quote})*+{quote}"
    return f"{quote}[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+{quote}"


def _opening_quotes(dialect: Dialect) -> str:
    return dialect.strings + dialect.identifiers + ("[" if dialect.brackets else "")
