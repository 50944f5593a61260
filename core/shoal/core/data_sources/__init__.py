"""Data sources: where databases and services are found, and how tasks sign in there.

Start with ``model``: a data source as a task uses it. ``spec`` is what is stored of one and what is
wrong with it, ``kinds`` what each kind takes, ``options`` the allow-list of each kind's options.
``rendering`` makes the one of the other for an attempt, ``naming`` finds the fields of a task's
params that name data sources.
"""

from shoal.core.data_sources.model import DataSource, Option, SourceKind

__all__ = ["DataSource", "Option", "SourceKind"]
