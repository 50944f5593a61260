"""Lists of installed plug-ins, which one broken package does not end."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import structlog
from pydantic.errors import PydanticUserError

from shoal.core.errors import UnusablePlugin

log = structlog.get_logger()

T = TypeVar("T")


def usable_plugins(names: Iterable[str], show: Callable[[str], T]) -> list[T]:
    """Return what ``show`` makes of each plug-in; leave out those that cannot be used.

    A plug-in cannot be used if its import fails, or if its fields have no JSON Schema. The log says
    which, and `shoal doctor` does on its machine.
    """
    found = []
    for name in names:
        try:
            found.append(show(name))
        except (UnusablePlugin, PydanticUserError) as error:
            log.warning("plug-in left out", name=name, why=str(error))
    return found
