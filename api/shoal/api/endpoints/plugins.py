"""Lists of installed plug-ins, which one broken package does not end."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog

from shoal.core.errors import UnusablePlugin, shortened

log = structlog.get_logger()

T = TypeVar("T")

_LONGEST_PROBLEM = 500  # characters


def usable_plugins(names: Iterable[str], show: Callable[[str], T]) -> list[T]:
    """Return what ``show`` makes of each plug-in; leave out those that cannot be used.

    A plug-in cannot be used if its import fails, or if its code fails while it is shown, for
    example because its fields have no JSON Schema. The log says which. `shoal doctor` names those
    whose import fails on its machine.
    """
    found = []
    for name in names:
        try:
            found.append(show(name))
        except UnusablePlugin as error:
            log.warning("plug-in left out", name=name, why=str(error))
        except (Exception, SystemExit) as error:  # code of a package may raise any
            why = shortened(f"{type(error).__name__}: {error}", _LONGEST_PROBLEM)
            log.warning("plug-in left out", name=name, why=why, exc_info=True)
    return found
