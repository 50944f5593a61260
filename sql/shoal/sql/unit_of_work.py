"""One transaction and the repositories that work in it."""

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from types import TracebackType
from typing import Self

from shoal.sql.driver.connection import Connection, ConnectionSource
from shoal.sql.errors import SqlError
from shoal.sql.repositories.access.audit import Audit
from shoal.sql.repositories.access.credentials import Sessions, Tokens
from shoal.sql.repositories.access.grants import Grants
from shoal.sql.repositories.access.groups import Groups
from shoal.sql.repositories.access.homes import Homes
from shoal.sql.repositories.access.members import MemberRepository
from shoal.sql.repositories.access.principals import Principals
from shoal.sql.repositories.access.resource_grants import ResourceGrants
from shoal.sql.repositories.access.restrictions import Restrictions
from shoal.sql.repositories.access.rights import Rights
from shoal.sql.repositories.access.sign_ins import SignIns
from shoal.sql.repositories.alerts.alerts import Alerts
from shoal.sql.repositories.alerts.conditions import AlertConditions
from shoal.sql.repositories.alerts.definitions import AlertDefinitions
from shoal.sql.repositories.alerts.deliveries import Deliveries
from shoal.sql.repositories.alerts.facts import AlertFacts
from shoal.sql.repositories.alerts.jobs import AlertJobs
from shoal.sql.repositories.authoring.drafts import Drafts
from shoal.sql.repositories.authoring.layouts import Layouts
from shoal.sql.repositories.authoring.lifecycle import Lifecycle
from shoal.sql.repositories.authoring.references import References
from shoal.sql.repositories.definitions.backfills import BackfillRepository
from shoal.sql.repositories.definitions.calendars import Calendars
from shoal.sql.repositories.definitions.concurrency import ConcurrencyGroups
from shoal.sql.repositories.definitions.data_sources import DataSources
from shoal.sql.repositories.definitions.environments import Environments
from shoal.sql.repositories.definitions.projects import Projects
from shoal.sql.repositories.definitions.resources import Resources
from shoal.sql.repositories.definitions.schedules import Schedules
from shoal.sql.repositories.definitions.secrets import SecretRepository
from shoal.sql.repositories.definitions.secrets_keys import Sealing
from shoal.sql.repositories.definitions.workflows import WorkflowRepository
from shoal.sql.repositories.events import Events
from shoal.sql.repositories.exports.finished_rows import FinishedRows
from shoal.sql.repositories.exports.position import HistoryExports
from shoal.sql.repositories.exports.verified_history import VerifiedHistory
from shoal.sql.repositories.insight.batches import RollupBatches
from shoal.sql.repositories.insight.rollups import Rollups
from shoal.sql.repositories.overview.grid import RunGrid
from shoal.sql.repositories.overview.history import History
from shoal.sql.repositories.overview.punctuality import Punctuality
from shoal.sql.repositories.overview.recent_runs import Recent
from shoal.sql.repositories.overview.workflow_list import WorkflowList
from shoal.sql.repositories.plans import PlanCache
from shoal.sql.repositories.runs.admission import AdmissionRepository
from shoal.sql.repositories.runs.commands import Commands
from shoal.sql.repositories.runs.dependencies import DependencyRepository
from shoal.sql.repositories.runs.instance_counts import StateCounts
from shoal.sql.repositories.runs.instances import Instances
from shoal.sql.repositories.runs.labels import Labels
from shoal.sql.repositories.runs.new_instances import NewInstances
from shoal.sql.repositories.runs.slots import Slots
from shoal.sql.repositories.runs.tasks import TaskRepository
from shoal.sql.repositories.upkeep.backlogs import Backlogs
from shoal.sql.repositories.upkeep.cluster import ClusterRepository
from shoal.sql.repositories.upkeep.expired_rows import ExpiredRows
from shoal.sql.repositories.upkeep.partitions import OnFenced, Partitions
from shoal.sql.repositories.upkeep.purges import Purges
from shoal.sql.repositories.upkeep.quarantine import QuarantinedItems
from shoal.sql.repositories.upkeep.sizes import DatabaseSizes
from shoal.sql.repositories.upkeep.watermarks import Watermarks


class UnitOfWork:
    """Everything done inside ``async with`` happens together at ``commit``, or not at all.

    Used by one task at a time, for one transaction. A writing one on SQLite holds the database's
    only write lock from its start, so keep it short and never open a second one inside it.
    """

    connection: Connection

    def __init__(
        self,
        source: ConnectionSource,
        plans: PlanCache,
        recorder: "Recorder | None" = None,
        on_fenced: OnFenced | None = None,
        on_failure: "OnFailure | None" = None,
    ) -> None:
        self._source = source
        self._plans = plans
        self._recorder = recorder
        self._on_fenced = on_fenced
        self._on_failure = on_failure

    async def __aenter__(self) -> Self:
        try:
            self.connection = await self._source.open()
        except SqlError as error:
            self._failed(error)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._failed(error)
        await self.connection.close()

    def _failed(self, error: BaseException | None) -> None:
        if error is not None and self._on_failure is not None:
            self._on_failure(error)

    async def fence(self, epochs: Mapping[int, int]) -> None:
        """Raise Fenced unless each of these partitions still has the caller's epoch.

        Call it first in every transaction that writes on behalf of partitions: a successor's
        ``raise_epochs`` waits until this transaction has ended.
        """
        await self.partitions.require(epochs)

    async def commit(self) -> None:
        """Make the changes durable. The unit of work is over then.

        If this raises DatabaseUnavailable, the changes may or may not have been made.
        """
        if self._recorder is not None:
            await self._recorder(self)
        await self.connection.commit()

    # -- the repositories, each made when it is first used ------------------------------------

    @cached_property
    def events(self) -> Events:
        return Events(self.connection)

    @cached_property
    def projects(self) -> Projects:
        return Projects(self.connection)

    @cached_property
    def commands(self) -> Commands:
        return Commands(self.connection)

    @cached_property
    def grid(self) -> RunGrid:
        return RunGrid(self.connection)

    @cached_property
    def recent(self) -> Recent:
        return Recent(self.connection, self.instances)

    @cached_property
    def history(self) -> History:
        return History(self.connection)

    @cached_property
    def labels(self) -> Labels:
        return Labels(self.connection, self.events)

    @cached_property
    def tasks(self) -> TaskRepository:
        return TaskRepository(self.connection)

    @cached_property
    def secrets(self) -> SecretRepository:
        return SecretRepository(self.connection)

    @cached_property
    def sealing(self) -> Sealing:
        return Sealing(self.connection)

    @cached_property
    def rights(self) -> Rights:
        return Rights(self.connection)

    @cached_property
    def audit(self) -> Audit:
        return Audit(self.connection)

    @cached_property
    def grants(self) -> Grants:
        return Grants(self.connection)

    @cached_property
    def resource_grants(self) -> ResourceGrants:
        return ResourceGrants(self.connection)

    @cached_property
    def restrictions(self) -> Restrictions:
        return Restrictions(self.connection)

    @cached_property
    def homes(self) -> Homes:
        return Homes(self.connection)

    @cached_property
    def principals(self) -> Principals:
        return Principals(self.connection, self.rights)

    @cached_property
    def groups(self) -> Groups:
        return Groups(self.connection, self.rights)

    @cached_property
    def members(self) -> MemberRepository:
        return MemberRepository(self.connection, self.rights)

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self.connection, self.rights)

    @cached_property
    def sign_ins(self) -> SignIns:
        return SignIns(self.connection)

    @cached_property
    def tokens(self) -> Tokens:
        return Tokens(self.connection, self.rights)

    @cached_property
    def data_sources(self) -> DataSources:
        return DataSources(self.connection, self.projects)

    @cached_property
    def resources(self) -> Resources:
        return Resources(self.connection, self.projects)

    @cached_property
    def alerts(self) -> Alerts:
        return Alerts(self.connection, self.events)

    @cached_property
    def alert_facts(self) -> AlertFacts:
        return AlertFacts(self.alerts, self.instances, self.tasks)

    @cached_property
    def alert_conditions(self) -> AlertConditions:
        return AlertConditions(self.connection, self.events)

    @cached_property
    def punctuality(self) -> Punctuality:
        return Punctuality(self.connection)

    @cached_property
    def alert_definitions(self) -> AlertDefinitions:
        return AlertDefinitions(self.connection, self.projects, self.alert_jobs)

    @cached_property
    def deliveries(self) -> Deliveries:
        return Deliveries(self.connection, self.events)

    @cached_property
    def alert_jobs(self) -> AlertJobs:
        return AlertJobs(self.connection)

    @cached_property
    def environments(self) -> Environments:
        return Environments(self.connection, self.restrictions)

    @cached_property
    def cluster(self) -> ClusterRepository:
        return ClusterRepository(self.connection)

    @cached_property
    def watermarks(self) -> Watermarks:
        return Watermarks(self.connection)

    @cached_property
    def partitions(self) -> Partitions:
        return Partitions(self.connection, self._on_fenced)

    @cached_property
    def calendars(self) -> Calendars:
        return Calendars(self.connection, self.projects)

    @cached_property
    def concurrency(self) -> ConcurrencyGroups:
        return ConcurrencyGroups(self.connection, self.projects)

    @cached_property
    def quarantine(self) -> QuarantinedItems:
        return QuarantinedItems(self.connection)

    @cached_property
    def slots(self) -> Slots:
        return Slots(self.connection)

    @cached_property
    def dependencies(self) -> DependencyRepository:
        return DependencyRepository(self.connection)

    @cached_property
    def schedules(self) -> Schedules:
        return Schedules(self.connection, self.partitions, self.calendars, self.events)

    @cached_property
    def instances(self) -> Instances:
        return Instances(self.connection, self._plans)

    @cached_property
    def new_instances(self) -> NewInstances:
        return NewInstances(self.connection, self._plans)

    @cached_property
    def instance_counts(self) -> StateCounts:
        return StateCounts(self.connection)

    @cached_property
    def admission(self) -> AdmissionRepository:
        return AdmissionRepository(self.connection, self._plans)

    @cached_property
    def workflows(self) -> WorkflowRepository:
        return WorkflowRepository(
            connection=self.connection,
            plans=self._plans,
            projects=self.projects,
            schedules=self.schedules,
            groups=self.concurrency,
            environments=self.environments,
            restrictions=self.restrictions,
            events=self.events,
        )

    @cached_property
    def workflow_list(self) -> WorkflowList:
        return WorkflowList(self.connection)

    @cached_property
    def drafts(self) -> Drafts:
        return Drafts(self.connection, self.projects)

    @cached_property
    def layouts(self) -> Layouts:
        return Layouts(self.connection)

    @cached_property
    def references(self) -> References:
        return References(self.connection)

    @cached_property
    def lifecycle(self) -> Lifecycle:
        return Lifecycle(
            connection=self.connection,
            workflows=self.workflows,
            schedules=self.schedules,
            references=self.references,
            drafts=self.drafts,
            layouts=self.layouts,
            events=self.events,
        )

    @cached_property
    def backfills(self) -> BackfillRepository:
        return BackfillRepository(self.connection, self.events)

    @cached_property
    def finished_rows(self) -> FinishedRows:
        return FinishedRows(self.connection)

    @cached_property
    def history_exports(self) -> HistoryExports:
        return HistoryExports(self.connection)

    @cached_property
    def rollups(self) -> Rollups:
        return Rollups(self.connection)

    @cached_property
    def rollup_batches(self) -> RollupBatches:
        return RollupBatches(self.connection)

    @cached_property
    def verified_history(self) -> VerifiedHistory:
        return VerifiedHistory(self.connection)

    @cached_property
    def expired(self) -> ExpiredRows:
        return ExpiredRows(self.connection)

    @cached_property
    def purges(self) -> Purges:
        return Purges(self.connection)

    @cached_property
    def backlogs(self) -> Backlogs:
        return Backlogs(self.connection)

    @cached_property
    def sizes(self) -> DatabaseSizes:
        return DatabaseSizes(self.connection)


#: Adds what belongs to a transaction before it is committed: its entry in the audit.
Recorder = Callable[[UnitOfWork], Awaitable[None]]
#: Is called with what a writing transaction has failed with.
OnFailure = Callable[[BaseException], None]
