"""A data source as a task uses it.

A project's data sources are stored by the API, with the password encrypted. A task names one in a
field of its params that is marked ``SourceName``. The master sends it to the worker with the
payload.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Option = str | int | float | bool


@dataclass(frozen=True)
class DataSource:
    """One data source: all texts rendered, the password in plain text.

    ``host`` and ``port`` name a server, ``database`` its database or schema, or the path of a file.
    ``kind`` is the name of its ``SourceKind``; ``options`` are those that the kind allows, with
    their defaults. ``version`` grows with each change of the stored data source.
    """

    name: str
    kind: str
    host: str = ""
    port: int | None = None
    database: str = ""
    user: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)
    password: str = field(default="", repr=False)
    version: int = 0
