"""Text of tasks on a terminal: colours yes, commands to the terminal no."""

import re

# Control sequences (ECMA-48), texts for the terminal itself (titles, clipboard), other controls.
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-Z\\^-~]?"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\x80-\x9f]"
)
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


def harmless(text: str) -> str:
    """Return ``text`` without what would move the cursor, set titles or do worse."""
    return _CONTROL.sub(lambda found: found[0] if _COLOUR.fullmatch(found[0]) else "", text)


def one_line(text: str) -> str:
    """Return ``text`` as one harmless line: every run of white space is one space."""
    return " ".join(harmless(text).split())
