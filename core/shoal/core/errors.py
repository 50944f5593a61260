"""The root of every error that Shoal raises on purpose.

::

    ShoalError
    ├── core            InvalidDefinition, IllegalTransition, CommandRefused …
    ├── coordination    SessionLost, NotOwner …
    ├── sql             Fenced, StaleRow, NotFound …
    ├── proto           Unauthenticated, PeerUnavailable …
    └── client          PortTaken, JavaNotFound …

Each package declares its own branch in its own ``errors.py``. A message says what happened,
where, and what to do next.
"""

from typing import ClassVar


class ShoalError(Exception):
    """Base of all deliberate errors.

    ``retriable`` says whether the same call may succeed later without any change. Retry
    code reads this flag and never the text.
    """

    retriable: ClassVar[bool] = False


LONGEST_REASON = 1_000
"""Characters of a reason that is stored: people read it, in lists of many."""


def shortened(text: str, most: int) -> str:
    """Return ``text``, cut to ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
