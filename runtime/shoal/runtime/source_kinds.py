"""Kinds of data sources that are installed here, found by entry points and imported when needed.

The process of every SQL task imports this module, so it imports little.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from shoal.core.data_sources.kind import SourceKind, UnknownSourceKind
from shoal.core.errors import ShoalError, shortened

ENTRY_POINT_GROUP = "shoal.data_source_kinds"

#: Kinds that other packages of this project provide, and the command that installs them.
_ELSEWHERE = dict.fromkeys(
    ("clickhouse", "oracle", "sqlserver"), "pip install shoal-experimental-databases"
)


class UnusableSourceKind(ShoalError):
    """The package of an installed kind is broken."""

    def __init__(self, name: str, value: str, problem: str) -> None:
        super().__init__(
            f"the kind of data source {name!r} cannot be loaded from {value}: {problem}; "
            "repair or remove its package"
        )


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def forget() -> None:
    """Forget which kinds were found, so that packages installed since then are found too."""
    _installed.cache_clear()
    load_source_kind.cache_clear()


def source_kinds() -> list[str]:
    """Names of all installed kinds, sorted."""
    return sorted(_installed())


@cache
def load_source_kind(name: str) -> type[SourceKind]:
    """Import one installed kind; the others stay unimported.

    Raises UnknownSourceKind, and UnusableSourceKind if its package is broken.
    """
    if name not in _installed():
        raise UnknownSourceKind(name, source_kinds(), _ELSEWHERE.get(name, ""))
    point = _installed()[name]
    try:
        found = point.load()
    except Exception as error:  # a package's code may fail in any way
        problem = " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())
        raise UnusableSourceKind(name, point.value, shortened(problem, 500)) from error
    if not (isinstance(found, type) and issubclass(found, SourceKind)):
        raise UnusableSourceKind(name, point.value, "it is not a SourceKind")
    return found
