"""Kinds of data sources that are installed here, found by entry points and imported when needed.

The process of every SQL task imports this module, so it imports little.
"""

from functools import cache
from importlib.metadata import EntryPoint

from shoal.core.data_sources.kind import SourceKind, SourceOptions, UnknownSourceKind
from shoal.runtime import plugin_packages

ENTRY_POINT_GROUP = "shoal.data_source_kinds"

#: Kinds that other packages of this project provide, and the command that installs them.
_ELSEWHERE = dict.fromkeys(
    ("clickhouse", "oracle", "sqlserver"), "pip install shoal-experimental-databases"
)


@cache
def _installed() -> dict[str, EntryPoint]:
    return plugin_packages.installed(ENTRY_POINT_GROUP)


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

    Raises UnknownSourceKind, and UnusablePlugin if its package is broken.
    """
    point = _installed().get(name)
    if point is None:
        raise UnknownSourceKind(name, source_kinds(), _ELSEWHERE.get(name, ""))
    found: type[SourceKind] = plugin_packages.load(
        point, SourceKind, f"kind of data source {name!r}", {"Options": SourceOptions}
    )
    return found
