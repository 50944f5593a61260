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


class UnusablePlugin(ShoalError):
    """The package of a plug-in is installed and broken: its class cannot be imported or used.

    ``subject``: what the plug-in is, such as "task type 'RUBY'". ``package``: name and version,
    None if they are not known.
    """

    def __init__(self, subject: str, value: str, package: str | None, problem: str) -> None:
        self.subject = subject
        named = "its package" if package is None else f"the package {package}"
        super().__init__(
            f"the {subject} cannot be loaded from {value}: {problem}; repair or remove {named}"
        )


LONGEST_REASON = 1_000
"""Characters of a reason that is stored: people read it, in lists of many."""


def shortened(text: str, most: int) -> str:
    """Return ``text``, cut to ``most`` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"
