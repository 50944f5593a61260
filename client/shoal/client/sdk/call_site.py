"""Which line of the user's program called us."""

import sys

from shoal.runtime.documents.source import Position

_OURS = "shoal.client."


def call_site() -> Position:
    """Return the innermost line outside this package that led here."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    return Position(frame.f_code.co_filename, frame.f_lineno)
