"""Statements that hold others: does a semicolon end them, or something inside?

Each object follows one statement, token by token. Words of blocks are not reserved words everywhere
(a column may be called ``end``), so each END must stand where only a keyword can; what does not
fit is not guessed but refused.
"""

from collections.abc import Sequence
from enum import StrEnum

from shoal.worker.types.sql.statements.dialects import Blocks

_FIRST = 12  # words that say what a statement is
_TRANSACTION = frozenset(
    [
        "TRANSACTION",
        "TRAN",
        "WORK",
        "ISOLATION",
        "READ",
        "DEFERRED",
        "IMMEDIATE",
        "EXCLUSIVE",
        "NOT",
    ]
)
_CREATE = frozenset(
    ["OR", "REPLACE", "ALTER", "TEMP", "TEMPORARY", "AGGREGATE", "EDITIONABLE", "NONEDITIONABLE"]
)
_OF_DEFINER = frozenset(["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE", "VIEW"])
_CONTROL = frozenset(["IF", "LOOP", "WHILE", "REPEAT", "FOR"])
_HOLDS: dict[Blocks, frozenset[str]] = {
    Blocks.TRIGGER: frozenset({"TRIGGER"}),
    Blocks.ATOMIC: frozenset({"PROCEDURE", "FUNCTION"}),
    Blocks.ROUTINE: frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"}),
}


class NotSure(Exception):
    """Where the statement ends cannot be said; the text says why."""


def created(words: Sequence[str]) -> str | None:
    """Return what a CREATE statement creates, as PROCEDURE; None: not known yet, or no CREATE."""
    if not words or words[0] != "CREATE":
        return None
    if "DEFINER" in words:  # of which any words may follow
        return next((word for word in words if word in _OF_DEFINER), None)
    return next((word for word in words[1:] if word not in _CREATE), None)


class Frame(StrEnum):
    """What is open, and what closes it."""

    BEGIN = "BEGIN"  # END behind a semicolon
    CASE = "CASE"  # END, END CASE
    UNIT = "UNIT"  # declarations of a procedure; BEGIN makes a BEGIN of it
    PACKAGE = "PACKAGE"  # END, or BEGIN as that of a unit


class OpenStatement:
    """Follows one statement. ``words`` are its first words, in capitals."""

    def __init__(self, style: Blocks) -> None:
        self._style = style
        self.words: list[str] = []
        self._stack: list[Frame] = []
        self._before = self._last = ""  # the token before the last one, and that
        self._ending = False  # the last token was END
        self._doubt = ""

    @property
    def keeps_semicolon(self) -> bool:
        """Whether the semicolon that ends it is a part of it."""
        return False

    def add(self, text: str, *, is_word: bool) -> None:
        """Take the next token; comments are none. Raises NotSure."""
        word = text.upper() if is_word and self._last not in (".", "@") else ""
        if self._ending:
            self._end(word)
        if word:
            if len(self.words) < _FIRST:
                self.words.append(word)
            self._word(word)
        self._before, self._last = self._last, word or text

    def ends(self) -> bool:
        """Return whether a semicolon here ends the statement. Raises NotSure."""
        if self._ending:
            self._end("")
        if self._stack:
            return False
        if self._doubt:
            raise NotSure(self._doubt)
        return True

    def close(self) -> None:
        """Say that the text is over. Raises NotSure if something is still open."""
        if self._ending:
            self._end("")
        if self._stack:
            raise NotSure(f"its {self._stack[-1]} has no END")

    # -- words ----------------------------------------------------------------------------------

    def _word(self, word: str) -> None:
        kind = created(self.words)
        holds = kind in _HOLDS.get(self._style, ()) or (
            self._style is Blocks.ROUTINE and self.words[:2] == ["WITH", "FUNCTION"]
        )
        if word == "END" and (holds or self._stack):
            self._ending = True
        elif self._opens_block(word, holds):
            self._stack.append(Frame.BEGIN)
        elif word == "CASE" and self._last != "END" and (holds or self._stack):
            self._stack.append(Frame.CASE)
        elif not self._stack:
            self._doubt = self._doubt or self._why_unsure(word, kind, holds=holds)

    def _opens_block(self, word: str, holds: bool) -> bool:
        if self._style is Blocks.ATOMIC:
            return holds and word == "ATOMIC" and self._last == "BEGIN"
        if self._style is Blocks.ROUTINE and self.words == ["BEGIN", "NOT", "ATOMIC"]:
            return word == "ATOMIC"
        return holds and word == "BEGIN"

    def _why_unsure(self, word: str, kind: str | None, *, holds: bool) -> str:
        if kind == "PACKAGE":
            return "a package"
        if len(self.words) == 2 and self.words[0] == "BEGIN" and word not in _TRANSACTION:
            return "a block outside of a procedure"
        if self._style is not Blocks.ROUTINE:
            return ""
        if len(self.words) == 1 and word in _CONTROL:
            return f"{word} outside of a procedure"
        is_body = holds and (word in ("THEN", "LOOP", "ELSEIF", "UNTIL"))
        return f"{word} in a body without BEGIN" if is_body else ""

    # -- END ------------------------------------------------------------------------------------

    def _end(self, following: str) -> None:
        """Close what an END closes, now that the word behind it is known."""
        self._ending = False
        if following in _CONTROL and self._before == ";":
            return  # of IF … END IF, which holds no END of its own
        if not self._stack:
            raise NotSure("its END closes nothing")
        frame = self._stack.pop()
        if frame is Frame.CASE:
            return
        if following == "CASE" or not self._may_end():
            raise NotSure("its END does not follow a semicolon; is it a keyword or a name?")

    def _may_end(self) -> bool:
        return self._before in (";", "BEGIN", "ATOMIC")


class OracleStatement(OpenStatement):
    """Follows one statement of Oracle: a unit of PL/SQL keeps its last semicolon."""

    def __init__(self) -> None:
        super().__init__(Blocks.PLSQL)
        self._is_unit = False
        self._header = False  # of a procedure or function; IS begins its declarations
        self._needs_slash = ""
        self._depth = 0  # of parentheses

    @property
    def keeps_semicolon(self) -> bool:
        """See OpenStatement."""
        return self._is_unit

    def add(self, text: str, *, is_word: bool) -> None:
        """See OpenStatement."""
        super().add(text, is_word=is_word)
        if text == "(":
            self._depth += 1
        elif text == ")":
            self._depth -= 1
        elif text == ";" and self._depth <= 0:
            self._header = False
        elif text == "<" and not self.words:
            self._is_unit = True  # <<label>>

    def ends(self) -> bool:
        """See OpenStatement."""
        return super().ends() and not self._needs_slash

    def close(self) -> None:
        """See OpenStatement."""
        super().close()
        if self._needs_slash:
            raise NotSure(self._needs_slash)

    def _word(self, word: str) -> None:
        if len(self.words) < _FIRST:
            self._look_at_beginning()
        if word == "COMPOUND" and not self._stack and created(self.words) == "TRIGGER":
            self._needs_slash = "a compound trigger"
        if not self._is_unit or self._needs_slash:
            return
        top = self._stack[-1] if self._stack else None
        match word:
            case "END":
                self._ending = True
            case "CASE" if self._last != "END":
                self._stack.append(Frame.CASE)
            case "BEGIN":
                if top in (Frame.UNIT, Frame.PACKAGE):
                    self._stack.pop()
                self._stack.append(Frame.BEGIN)
            case "DECLARE":
                self._stack.append(Frame.UNIT)
            case "PROCEDURE" | "FUNCTION" if top in (None, Frame.UNIT, Frame.PACKAGE):
                self._header = True
            case "IS" | "AS" if self._header and self._depth <= 0:
                self._header = False
                is_package = top is None and created(self.words) in ("PACKAGE", "TYPE")
                self._stack.append(Frame.PACKAGE if is_package else Frame.UNIT)
            case "LANGUAGE" | "EXTERNAL" if self._last in ("IS", "AS") and top is Frame.UNIT:
                self._stack.pop()

    def _look_at_beginning(self) -> None:
        kind = created(self.words)
        if self.words[0] in ("DECLARE", "BEGIN") or kind in ("PROCEDURE", "FUNCTION", "TRIGGER"):
            self._is_unit = True
        elif kind == "PACKAGE" or (kind == "TYPE" and "BODY" in self.words):
            self._header = self._header or not self._is_unit
            self._is_unit = True
        elif kind in ("JAVA", "LIBRARY") or self.words[:2] in (
            ["WITH", "FUNCTION"],
            ["WITH", "PROCEDURE"],
        ):
            self._is_unit = True
            self._needs_slash = "its text is in another language, or has functions of its own"

    def _may_end(self) -> bool:
        return self._before in (";", "BEGIN", "IS", "AS")
