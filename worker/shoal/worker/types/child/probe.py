"""Probes of data sources: work that a worker runs when a user tests a data source."""

from typing import Annotated

from shoal.core.task_types import SourceName, TaskKind, TaskParams


class ProbeParams(TaskParams):
    """The data source to be tested."""

    data_source: Annotated[str, SourceName()]


class Probe(TaskKind[ProbeParams]):
    """What the process of a probe runs as; it is not a task type of users."""

    Params = ProbeParams
