"""What the request handlers work with: one object, built in ``main``, passed in."""

import asyncio
from copy import copy
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Self

from fastapi import Depends, Request

from shoal.api.access.audit import Auditor
from shoal.api.access.callers import HomeCache
from shoal.api.access.failed_logins import Attempts
from shoal.api.access.identities import Identities
from shoal.api.access.one_time import OneTimeCodes
from shoal.api.access.passwords import Passwords
from shoal.api.federation.issuers import Federation
from shoal.api.operations.cluster.ownership import OwnershipWatch
from shoal.api.operations.data_sources import Prober
from shoal.api.operations.feed import Feed
from shoal.api.operations.insight.baselines import BaselineCache
from shoal.api.operations.insight.day_results import DayCache
from shoal.api.operations.intake import Intake
from shoal.api.operations.logs import LogProxy
from shoal.api.operations.resources import ResourceFiles
from shoal.api.operations.runs.progress import ProgressReader
from shoal.api.settings import ApiSettings
from shoal.coordination.cluster.cluster_clock import ClusterClock
from shoal.coordination.cluster.membership import Members
from shoal.coordination.cluster.owners import Owners
from shoal.coordination.queue import TaskQueue
from shoal.coordination.session.session import ZkSession
from shoal.insight.past.client import PastRuns
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.vault import Vault
from shoal.sql import Database, Recorder


@dataclass(frozen=True)
class Services:
    """Everything is entered already and belongs to the caller. One per process."""

    settings: ApiSettings
    data: Path
    token: str = field(repr=False)  # of the data folder
    identities: Identities
    homes: HomeCache
    passwords: Passwords
    attempts: Attempts
    federation: Federation
    auditor: Auditor
    database: Database
    session: ZkSession
    masters: Members
    workers: Members
    owners: Owners
    ownership: OwnershipWatch
    queue: TaskQueue
    partitions: int
    intake: Intake
    feed: Feed
    logs: LogProxy
    progress: ProgressReader
    past: PastRuns
    prober: Prober
    resources: ResourceFiles
    vault: Vault = field(repr=False)
    secret_stores: SecretStores
    one_time: OneTimeCodes = field(repr=False)
    stopping: asyncio.Event  # set at shutdown: open streams end
    clock: ClusterClock
    results: DayCache = field(default_factory=DayCache)
    usual: BaselineCache = field(default_factory=BaselineCache)
    version: str = version("shoal")

    def recording(self, recorder: Recorder) -> Self:
        """Return these services for one request, whose changes are committed with its entry."""
        view = copy(self)  # ``replace`` would make it from its thirty parts
        object.__setattr__(view, "database", self.database.recording(recorder))
        return view


def services_of(request: Request) -> Services:
    """Return the services of the application that serves ``request``."""
    found = request.app.state.services
    assert isinstance(found, Services)
    return found


async def _services(request: Request) -> Services:
    return services_of(request)  # not itself: FastAPI calls what is not async in a thread


Shoal = Annotated[Services, Depends(_services)]
