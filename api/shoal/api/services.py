"""What the request handlers work with: built in ``main``, and handed to each handler in parts.

A handler names the parts it uses as parameters, for example ``store: StoreDep``. The guard of a
handler that changes something replaces its store by one that commits the entry in the audit with
each change.
"""

from dataclasses import dataclass, field
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, Request

from shoal.api.access.control import AccessControl
from shoal.api.access.identities import Identities
from shoal.api.federation.issuers import Federation
from shoal.api.operations.cluster.view import ClusterView
from shoal.api.operations.data_sources import Prober
from shoal.api.operations.feed import Feed
from shoal.api.operations.insight.baselines import BaselineCache
from shoal.api.operations.insight.day_results import DayCache
from shoal.api.operations.intake import Intake
from shoal.api.operations.logs import LogProxy
from shoal.api.operations.resources import ResourceFiles
from shoal.api.operations.runs.progress import ProgressReader
from shoal.api.operations.secrets.values import SecretValues
from shoal.api.settings import ApiSettings
from shoal.api.web.sse import Streams
from shoal.api.web.store import Store
from shoal.api.web.turns import LargeRequests
from shoal.insight.past.client import PastRuns
from shoal.runtime.side.process import SideProcesses
from shoal.runtime.side.templates import Templates

VERSION = version("shoal")


@dataclass(frozen=True)
class Services:
    """Everything is entered already and belongs to the caller. One per process."""

    settings: ApiSettings
    data: Path
    token: str = field(repr=False)  # of the data folder
    store: Store
    access: AccessControl
    federation: Federation
    cluster: ClusterView
    feed: Feed
    streams: Streams
    intake: Intake
    logs: LogProxy
    progress: ProgressReader
    prober: Prober
    past: PastRuns
    files: ResourceFiles
    secret_values: SecretValues
    processes: SideProcesses
    large_work: SideProcesses  # of large requests, whose turns bound how much there is
    templates: Templates
    large_requests: LargeRequests = field(default_factory=LargeRequests)
    day_results: DayCache = field(default_factory=DayCache)
    baselines: BaselineCache = field(default_factory=BaselineCache)


def _part(name: str) -> Any:
    part = attrgetter(name)

    async def dependency(request: Request) -> Any:  # FastAPI runs what is not async in a thread
        return part(request.app.state.services)

    return Depends(dependency)


SettingsDep = Annotated[ApiSettings, _part("settings")]
StoreDep = Annotated[Store, _part("store")]
AccessDep = Annotated[AccessControl, _part("access")]
IdentitiesDep = Annotated[Identities, _part("access.identities")]
FederationDep = Annotated[Federation, _part("federation")]
ClusterDep = Annotated[ClusterView, _part("cluster")]
FeedDep = Annotated[Feed, _part("feed")]
StreamsDep = Annotated[Streams, _part("streams")]
IntakeDep = Annotated[Intake, _part("intake")]
LogsDep = Annotated[LogProxy, _part("logs")]
ProgressDep = Annotated[ProgressReader, _part("progress")]
ProberDep = Annotated[Prober, _part("prober")]
PastDep = Annotated[PastRuns, _part("past")]
FilesDep = Annotated[ResourceFiles, _part("files")]
LargeWorkDep = Annotated[SideProcesses, _part("large_work")]
TemplatesDep = Annotated[Templates, _part("templates")]
SecretValuesDep = Annotated[SecretValues, _part("secret_values")]
DayResultsDep = Annotated[DayCache, _part("day_results")]
BaselinesDep = Annotated[BaselineCache, _part("baselines")]
