"""Replace ``${name}`` in a statement by what stands for a bound value: never by the value itself.

Bare, or as a whole literal (``'${name}'``), it is a value. Inside a longer literal or a quoted
name no value can be bound, so it is refused; inside a comment it stays. A name of ``identifiers``
becomes a name of the database, quoted by its driver.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from shoal.core.hints import Hints
from shoal.worker.types.sql.statements.dialects import Dialect
from shoal.worker.types.sql.statements.lexer import (
    PLACEHOLDER,
    InvalidStatement,
    Lexer,
    Token,
    TokenKind,
)
from shoal.worker.types.sql.statements.value_types import ValueType, typed

_PREFIXES = ("", "N", "E")  # of literals that are text all the same
_TYPED_LITERALS = frozenset({"DATE", "TIME", "TIMESTAMP", "DATETIME", "INTERVAL"})


@dataclass(frozen=True)
class BindingScope:
    """What names may mean: values with their types, and names of the database."""

    parameters: Mapping[str, str]
    types: Mapping[str, ValueType]
    identifiers: Mapping[str, str]


@dataclass(frozen=True)
class Bound:
    """A statement with its values, in the order of their places; ``names`` are the parameters'."""

    text: str
    values: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()


def bind(
    text: str,
    dialect: Dialect,
    scope: BindingScope,
    placeholder: Callable[[int, str], str],
    quote: Callable[[str], str],
) -> Bound:
    """Return ``text`` ready for ``Session.execute``. ``placeholder`` and ``quote``: see Session.

    Raises InvalidStatement where a name cannot be bound, NoValue for a text that has not its type.
    """
    if "${" not in text:
        return Bound(text)
    return _ParameterBinder(text, dialect, scope, placeholder, quote).bind()


class _ParameterBinder:
    def __init__(
        self,
        text: str,
        dialect: Dialect,
        scope: BindingScope,
        placeholder: Callable[[int, str], str],
        quote: Callable[[str], str],
    ) -> None:
        self._text, self._dialect, self._scope = text, dialect, scope
        self._placeholder, self._quote = placeholder, quote
        self._parts: list[tuple[str, bool]] = []  # a text, and whether it stands for a value
        self._values: list[Any] = []
        self._names: list[str] = []

    def bind(self) -> Bound:
        done, before = 0, None
        for token in Lexer(self._text, self._dialect).tokens():
            if (name := self._value_at(token, before)) is not None:
                start = before.start if before and self._is_prefix(before, token) else token.start
                self._parts.append((self._text[done:start], False))
                self._parts.append(self._replacement(name, token))
                done = token.end
            if token.kind is not TokenKind.COMMENT:
                before = token
        self._parts.append((self._text[done:], False))
        # Where % opens what stands for a value, the others are written twice.
        doubled = bool(self._values) and self._placeholder(0, ValueType.TEXT).startswith("%")
        text = "".join(
            part.replace("%", "%%") if doubled and not is_value else part
            for part, is_value in self._parts
        )
        return Bound(text, tuple(self._values), tuple(self._names))

    def _value_at(self, token: Token, before: Token | None) -> str | None:
        """Return the name that stands at ``token``, if it is one. Raises InvalidStatement."""
        match token.kind:
            case TokenKind.PLACEHOLDER:
                self._refuse_in_name(token, before)
                return self._text[token.start + 2 : token.end - 1]
            case TokenKind.STRING:
                return self._in_literal(token, before)
            case TokenKind.IDENTIFIER:
                if found := PLACEHOLDER.search(self._text, token.inner, token.outer):
                    reason = (
                        f"{found[0]} stands in a quoted name, where no value can be; write "
                        f"{found[0]} without the quotes, and `identifiers: {{{found[1]}: …}}`"
                    )
                    self._refuse(found.start(), reason)
            case _:
                pass
        return None

    def _refuse_in_name(self, token: Token, before: Token | None) -> None:
        text, end = self._text, token.end
        touches = before is not None and before.end == token.start and before.kind is TokenKind.WORD
        if touches or (end < len(text) and (text[end].isalnum() or text[end] in "_$")):
            name = text[token.start : end]
            reason = (
                f"{name} stands in a name, where no value can be; make the whole name one of "
                f"`identifiers`, as {{t: 'sales_{name}'}}, and write ${{t}}"
            )
            self._refuse(token.start, reason)

    def _in_literal(self, token: Token, before: Token | None) -> str | None:
        found = PLACEHOLDER.search(self._text, token.inner, token.outer)
        if found is None:
            return None
        shown = found[0]
        prefix = self._text[token.start : token.inner - 1].upper()
        if before is not None and self._is_prefix(before, token):
            prefix = self._text[before.start : before.end].upper()
        elif self._text[max(0, token.start - 2) : token.start].upper() == "U&":
            prefix = "U&"
        is_whole = found.span() == (token.inner, token.outer) and prefix in _PREFIXES
        quoted = self._text[token.start : token.inner].endswith(("'", '"'))
        if not (is_whole and quoted):
            reason = (
                f"{shown} stands inside a longer literal, where no value can be; write "
                f"'…' || {shown} || '…' or CONCAT('…', {shown}, '…'), and for the plain text "
                f"'$' || '{{{found[1]}}}'"
            )
            self._refuse(found.start(), reason)
        word = self._text[before.start : before.end].upper() if before is not None else ""
        if word in _TYPED_LITERALS:
            reason = (
                f"{word} '{shown}' takes a literal only; write {shown} with "
                f"`types: {{{found[1]}: date}}` or timestamp, or CAST({shown} AS {word})"
            )
            self._refuse(found.start(), reason)
        return found[1]

    def _is_prefix(self, before: Token, token: Token) -> bool:
        """Return whether a word is part of a literal: N'…', X'…'."""
        is_literal = token.kind is TokenKind.STRING
        return is_literal and before.kind is TokenKind.WORD and before.end == token.start

    def _replacement(self, name: str, token: Token) -> tuple[str, bool]:
        scope = self._scope
        if name in scope.identifiers:
            if token.kind is TokenKind.STRING:
                self._refuse(token.start, f"{name} is one of `identifiers`: write it unquoted")
            return self._quote(scope.identifiers[name]), False
        if name not in scope.parameters:
            hint = Hints().of(name, [*scope.parameters, *scope.identifiers])
            reason = f"there is no parameter {name!r}{hint}; give the task one of this name"
            self._refuse(token.start, reason)
        kind = scope.types.get(name, ValueType.TEXT)
        self._values.append(typed(name, scope.parameters[name], kind))
        self._names.append(name)
        return self._placeholder(len(self._values) - 1, kind.value), True

    def _refuse(self, position: int, reason: str) -> NoReturn:
        raise InvalidStatement(self._text, position, reason)
