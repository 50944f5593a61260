"""Data sources: where databases and services are, and how tasks sign in there.

Start with ``model``, a data source as a task uses it. ``kind`` is what a kind of data source
declares: core knows no kind by name. ``spec`` is a data source as it is defined and stored, with
its checks. ``resolution`` makes the one of the other for an attempt, ``references`` finds the
fields of a task's params that name data sources.
"""

from shoal.core.data_sources.kind import SourceKind
from shoal.core.data_sources.model import DataSource, Option

__all__ = ["DataSource", "Option", "SourceKind"]
