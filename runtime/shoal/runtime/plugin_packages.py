"""Classes that installed packages provide: found by entry points, imported when needed.

A package's code may fail in any way while it is imported. That is one error here, `UnusablePlugin`,
which names the entry point and its package. The process that needed the class continues without it.

The process of every SQL task imports this module, so it imports little.
"""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract
from types import MappingProxyType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from shoal.core.errors import UnusablePlugin, shortened

_LONGEST_PROBLEM = 500  # characters


def installed(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name. Nothing is imported."""
    return {point.name: point for point in entry_points(group=group)}


def load(
    point: EntryPoint,
    base: type,
    subject: str,
    models: Mapping[str, type] = MappingProxyType({}),
) -> Any:
    """Import the class behind an entry point. Raises UnusablePlugin.

    ``base``: the class that it has to derive from. ``models``: the classes that its attributes of
    these names have to derive from. ``subject``: what it is, such as "task type 'RUBY'". The
    attributes that ``base`` declares as class variables have to be there, with values of their
    types. A failed import is tried again at the next call. A module that was imported stays as it
    is in this process, so a class that was incomplete is repaired only for later processes.
    """
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # a module may also end in sys.exit()
        problem = " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())
        raise _unusable(point, subject, shortened(problem, _LONGEST_PROBLEM)) from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise _unusable(point, subject, f"it is not a {base.__name__}")
    if isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise _unusable(point, subject, f"it does not define {missing}")
    for name, model in models.items():
        given = getattr(found, name, None)
        if not (isinstance(given, type) and issubclass(given, model)):
            raise _unusable(point, subject, f"its {name} is not a {model.__name__}")
    for name, adapter in _class_variables(base).items():
        if name in models:
            continue
        if not hasattr(found, name):
            raise _unusable(point, subject, f"it does not define {name}")
        try:
            adapter.validate_python(getattr(found, name))
        except ValidationError as error:
            problem = shortened(error.errors()[0]["msg"], _LONGEST_PROBLEM)
            raise _unusable(point, subject, f"its {name} is invalid: {problem}") from error
    return found


@cache
def _class_variables(base: type) -> dict[str, TypeAdapter[Any]]:
    """Return what checks the values of the class variables that a base class declares, by name."""
    hints = get_type_hints(base, include_extras=True)
    return {
        name: TypeAdapter(get_args(hint)[0])
        for name, hint in hints.items()
        if get_origin(hint) is ClassVar and not name.startswith("_")
    }


def _unusable(point: EntryPoint, subject: str, problem: str) -> UnusablePlugin:
    package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else None
    return UnusablePlugin(subject, point.value, package, problem)
