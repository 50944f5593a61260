"""Errors of the database, and how the driver's errors are turned into them.

::

    ShoalError
    └── SqlError
        ├── DatabaseUnavailable   no connection, or it was lost (retriable)
        │   └── DatabaseRefused       user, password or name are wrong
        ├── DatabaseDamaged       the SQLite file is damaged or no database at all
        ├── TransactionConflict   deadlock, lock not granted in time (retriable)
        ├── Fenced                another process owns these partitions now
        ├── BoundElsewhere        the database is served from another ZooKeeper tree
        ├── StaleRow              rows are no longer in the state the caller saw
        ├── NotFound              there is no such row
        ├── UnreadableRow         a row holds what this version cannot read
        │   └── UnusableDefinition    so does a version of a workflow
        ├── IntegrityViolated     a constraint of the schema refuses the row
        │   ├── AlreadyExists     a unique key is taken
        │   └── BrokenReference   a row that this one names is missing
        ├── KeyTaken              the key of one of Shoal's own commands is another one's
        ├── InvalidValue          a value does not fit into its column
        ├── TooManyToSort         a filter leaves more than can be put into an order
        ├── OpenInstances         a workflow still has instances that have not ended
        ├── Archived              a workflow is archived: nothing is published or started
        ├── WorkflowInUse         other workflows still name a workflow, or backfills run it
        ├── WorkflowExists        another workflow has the name
        ├── DraftChanged          a draft is not what the caller has seen
        ├── RollupTaken           another writer was faster with the same roll-ups
        ├── CalendarInUse         schedules still name the calendar
        ├── ConcurrencyGroupInUse workflows still name the group, or tasks hold its slots
        ├── AccountExists         another account or group has the name
        ├── IdentityTaken         the external identity belongs to another account
        ├── LastAdministrator     the cluster would lose its last administrator
        ├── EnvironmentInUse      workflows still name the environment
        ├── PasswordOfAnotherServer   a kept password would be sent elsewhere
        ├── ResourceRefused       a file cannot be stored as a resource
        │   ├── PathTaken             a folder has its path, or a file that of one of its folders
        │   ├── ResourceChanged       it is no longer of the version that the caller has seen
        │   ├── UploadExpired         the upload took too long, and is forgotten
        │   └── ProjectFull           the project's resources would take too much room
        ├── InvalidDatabaseUrl    the URL cannot be read or names an unknown database
        ├── PartitionsMissing     the cluster has never been started on this database
        ├── PartitionsDiffer      the database was set up with another number of partitions
        ├── SchemaTooNew          the database was migrated by newer code
        ├── SchemaTooOld          the database is of a version that this code cannot migrate
        ├── SchemaMissing         tables or columns are missing: not migrated
        └── StatementFailed       anything else that the database refused

No text here holds a password or a statement's parameters.
"""

from collections.abc import Collection, Sequence
from datetime import date
from typing import ClassVar

from shoal.core.errors import ShoalError


class SqlError(ShoalError):
    """Base of this branch."""


class DatabaseUnavailable(SqlError):
    """The database did not answer, or the connection was lost.

    If ``commit`` raises this, it is not known whether the transaction was carried out. Read again,
    or repeat: idempotency keys, epochs and state guards make a repetition harmless.
    """

    retriable: ClassVar[bool] = True


class DatabaseRefused(DatabaseUnavailable):
    """The server refuses this user, this password, or a database of this name."""


class DatabaseUnwritable(DatabaseUnavailable):
    """The database answers, but stores nothing: it is read-only, or its disk is full."""


class DatabaseMoved(DatabaseUnwritable):
    """The SQLite file was moved, deleted or replaced while this process used it."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the database file {path} was moved, deleted or replaced while Shoal used it; move "
            "the same file back, or stop Shoal, restore the file from a copy and start again"
        )


class DatabaseUnsuitable(SqlError):
    """The database was examined before its first use, and Shoal cannot work with it."""


class DatabaseMissing(DatabaseUnsuitable):
    """The SQLite file is missing, although Shoal has used one of this name before."""

    def __init__(self, path: str, marker: str) -> None:
        super().__init__(
            f"the database file {path} is missing, but Shoal has used it before; move the file "
            f"back or restore it from a copy. To begin with an empty database, delete {marker}"
        )


class DatabaseDamaged(SqlError):
    """The SQLite file cannot be read; restore it from a copy."""


class TransactionConflict(SqlError):
    """The transaction lost against another one and was rolled back; repeat it from the start."""

    retriable: ClassVar[bool] = True


class BoundElsewhere(SqlError):
    """The database is bound to another ZooKeeper tree than the one of this process."""

    def __init__(self, database: str, ours: str, bound: str | None, address: str) -> None:
        super().__init__(
            f"the database {database} is bound to ZooKeeper tree {bound or '(none)'} at "
            f"{address or 'an unknown address'}, but this process works in tree {ours}; nothing "
            "was written. Check the settings `zookeeper` and `database_url` of this process"
        )


class Fenced(SqlError):
    """A write of a former owner: ``partitions`` have other epochs than the caller's.

    The process that wrote is not necessarily a former owner in ZooKeeper: if its owner znode
    stands, another poll does not help. ``Database.on_fenced`` hears of every one.
    """

    def __init__(self, partitions: Collection[int]) -> None:
        self.partitions = frozenset(partitions)
        listed = ", ".join(map(str, sorted(partitions)[:10]))
        more = f" and {len(partitions) - 10} more" if len(partitions) > 10 else ""
        super().__init__(
            f"the epoch of partition {listed}{more} is another one: a different process owns it "
            "now; stop working on it"
        )


class JobTaken(SqlError):
    """A write of a process that a job has been taken from."""

    def __init__(self, job: str, epoch: int) -> None:
        super().__init__(
            f"another process has taken the job {job} after epoch {epoch}; stop working on it"
        )


class StaleRow(SqlError):
    """Rows ``ids`` of ``table`` are not in a state that allows the change: read them again."""

    def __init__(self, table: str, ids: Collection[int]) -> None:
        self.table, self.ids = table, frozenset(ids)
        listed = ", ".join(map(str, sorted(ids)[:10])) or "unknown"
        super().__init__(
            f"{table} {listed}: changed in the meantime or final; nothing was written, read again"
        )


class NotFound(SqlError):
    """There is no such ``kind`` (project, workflow ...)."""

    def __init__(self, kind: str, key: object) -> None:
        self.kind, self.key = kind, key
        super().__init__(f"there is no {kind} {key}")


class UnreadableRow(SqlError):
    """A row of ``kind`` (command, schedule ...) holds what this version cannot read.

    Written by a newer version, or by hand. ``partition``: its owner's, -1 if unknown.
    """

    def __init__(self, kind: str, key: object, reason: str, partition: int = -1) -> None:
        self.kind, self.key, self.reason, self.partition = kind, key, reason, partition
        super().__init__(f"{kind} {key} cannot be read: {reason}")


class UnusableDefinition(UnreadableRow):
    """A stored version of a workflow is not a definition that this version understands."""

    def __init__(self, workflow_id: int, version: int, reason: str) -> None:
        self.workflow_id, self.version = workflow_id, version
        super().__init__("workflow version", f"{version} of workflow {workflow_id}", reason)


class IntegrityViolated(SqlError):
    """The schema refuses a row."""


class AlreadyExists(IntegrityViolated):
    """A unique key is taken."""


class BrokenReference(IntegrityViolated):
    """A row names another row that does not exist, or is still named by one."""


class KeyTaken(SqlError):
    """A command of Shoal's own was not stored: another command has its key.

    Only Shoal writes such a key, so the table was changed by other means.
    """

    def __init__(self, key: str, command_id: int) -> None:
        self.key, self.command_id = key, command_id
        super().__init__(
            f"the key {key!r} belongs to command {command_id}, which asks for something else; "
            "was the table command changed by hand? give that command another key"
        )


class InvalidValue(SqlError):
    """A value is too long, too large or of the wrong kind for its column."""


class TooManyToSort(SqlError):
    """A list in an order that no index has would have to read too many rows."""

    def __init__(self, key: str, most: int) -> None:
        self.key, self.most = key, most
        super().__init__(
            f"the filters leave more than {most} to sort by {key}; narrow them, with since and "
            "until for example, or sort by created_at"
        )


class OpenInstances(SqlError):
    """The workflow cannot be deleted while ``count`` of its instances have not ended."""

    def __init__(self, project: str, name: str, count: int) -> None:
        self.project, self.name, self.count = project, name, count
        super().__init__(
            f"workflow {project}/{name} has {count} instances that have not ended; "
            "stop them or wait for them, then delete it"
        )


class Archived(SqlError):
    """The workflow is archived: nothing is published or started."""

    def __init__(self, project: str, name: str) -> None:
        self.project, self.name = project, name
        super().__init__(
            f"workflow {project}/{name} is archived; take it out of the archive first: "
            f"shoal unarchive {project}/{name}"
        )


class WorkflowInUse(SqlError):
    """The workflow cannot be renamed or deleted: others name it, or backfills have to run it.

    ``workflows``: PROJECT/NAME of those that the caller sees; ``hidden``: how many more there are.
    """

    def __init__(
        self, project: str, name: str, workflows: Sequence[str], hidden: int, backfills: int
    ) -> None:
        self.project, self.name = project, name
        self.workflows, self.hidden, self.backfills = tuple(workflows), hidden, backfills
        listed = ", ".join(workflows[:10])
        others = hidden + max(0, len(workflows) - 10)
        reasons = []
        if workflows or hidden:
            unnamed = f"{others} workflows" + (" more" if listed else "") if others else ""
            reasons.append(f"is named by {' and '.join(filter(None, (listed, unnamed)))}")
        if backfills:
            reasons.append(f"has {backfills} backfills that have not ended")
        super().__init__(
            f"workflow {project}/{name} {' and '.join(reasons)}; change that first, or ask to "
            "leave it as it is"
        )


class WorkflowExists(SqlError):
    """A workflow of this name is there, or was and is deleted."""

    def __init__(self, project: str, name: str, *, is_deleted: bool = False) -> None:
        self.project, self.name = project, name
        what = "a deleted workflow, whose history is kept," if is_deleted else "a workflow"
        super().__init__(f"{what} is called {project}/{name} already; choose another name")


class DraftChanged(SqlError):
    """The draft is not what it was when it was read."""

    def __init__(self, project: str, name: str) -> None:
        super().__init__(f"the draft of {project}/{name} has changed since; read it again")


class RollupTaken(SqlError):
    """A batch of roll-ups is not to count: another one does since it began, or it was removed."""

    def __init__(self, job: str, day: date) -> None:
        self.job, self.day = job, day
        super().__init__(
            f"roll-ups {job} of {day}: another process has loaded them meanwhile, or removed what "
            "was unfinished; nothing is lost, the next loading looks again"
        )


class CalendarInUse(SqlError):
    """The calendar cannot be deleted while schedules of ``workflows`` name it."""

    def __init__(self, project: str, name: str, workflows: Sequence[str]) -> None:
        self.project, self.name, self.workflows = project, name, tuple(workflows)
        listed = ", ".join(workflows[:10])
        more = f" and {len(workflows) - 10} more" if len(workflows) > 10 else ""
        super().__init__(
            f"calendar {project}/{name} is used by the schedules of {listed}{more}; "
            "publish them without it, then delete it"
        )


class ConcurrencyGroupInUse(SqlError):
    """The group cannot be deleted: ``workflows`` name it, or ``attempts`` need its slots."""

    def __init__(self, project: str, name: str, workflows: Sequence[str], attempts: int) -> None:
        self.project, self.name = project, name
        self.workflows, self.attempts = tuple(workflows), attempts
        listed = ", ".join(workflows[:10])
        more = f" and {len(workflows) - 10} more" if len(workflows) > 10 else ""
        super().__init__(
            f"concurrency group {project}/{name} is used by the workflows {listed}{more}; "
            "publish them without it, then delete it"
            if workflows
            else f"{attempts} tasks have slots of the concurrency group {project}/{name} or wait "
            "for one; wait for them or stop them, then delete it"
        )


class EnvironmentInUse(SqlError):
    """The environment cannot be deleted while ``workflows``, PROJECT/NAME, name it."""

    def __init__(self, name: str, workflows: Sequence[str]) -> None:
        self.name, self.workflows = name, tuple(workflows)
        listed = ", ".join(workflows[:10])
        more = f" and {len(workflows) - 10} more" if len(workflows) > 10 else ""
        super().__init__(
            f"environment {name} is used by the workflows {listed}{more}; publish them without it, "
            "then delete it"
        )


class PasswordOfAnotherServer(SqlError):
    """A data source gets another server, and its password was not given again."""

    def __init__(self, project: str, name: str) -> None:
        self.project, self.name = project, name
        super().__init__(
            f"the data source {project}/{name} gets another kind, host or port; its password was "
            "given for the server before: give it again, or remove it"
        )


class ResourceRefused(SqlError):
    """A file cannot be stored as a resource of a project. Nothing has changed."""


class PathTaken(ResourceRefused):
    """A path cannot be a file and a folder at once."""

    def __init__(self, project: str, path: str, other: str) -> None:
        self.project, self.path, self.other = project, path, other
        super().__init__(
            f"project {project} has the file {other}, so {path} cannot be one: a path is a file or "
            "a folder; choose another path, or delete that file"
        )


class ResourceChanged(ResourceRefused):
    """A resource has not the version that a change was meant for."""

    def __init__(self, project: str, path: str, expected: int, found: int) -> None:
        self.project, self.path, self.expected, self.found = project, path, expected, found
        said = f"is of version {found} now" if found else "no longer exists"
        wanted = f"version {expected}" if expected else "none to be there"
        super().__init__(f"{project}/{path} {said}, the change expects {wanted}; look at it again")


class UploadExpired(ResourceRefused):
    """An upload is no longer known."""

    def __init__(self, project: str, path: str) -> None:
        self.project, self.path = project, path
        super().__init__(f"the upload of {project}/{path} took too long; send the file again")


class ProjectFull(ResourceRefused):
    """A project's resources take all the room that they may."""

    def __init__(self, project: str, taken: int, most: int) -> None:
        self.project, self.taken, self.most = project, taken, most
        super().__init__(
            f"the resources of project {project} would take {taken >> 20} MiB with all versions, "
            f"{most >> 20} MiB are allowed; delete files, end old unfinished runs, or raise "
            "resource_project_mb in the section [cluster]; deleted and replaced versions are kept "
            "for keep_deleted_resources_days, and as long as an unfinished run can use them"
        )


class AccountExists(SqlError):
    """A name is taken. Names that differ in case alone are the same."""

    def __init__(self, name: str, kind: str = "an account") -> None:
        self.name = name
        super().__init__(f"there is {kind} {name!r} already, perhaps in other letters' case")


class IdentityTaken(SqlError):
    """The external identity belongs to another account, or the account to another identity."""


class LastAdministrator(SqlError):
    """The change would leave no administrator."""

    def __init__(self) -> None:
        super().__init__("no administrator would be left; make another user an administrator first")


class InvalidDatabaseUrl(SqlError):
    """The database URL cannot be used. Its text is never part of the message."""


class PartitionsMissing(SqlError):
    """Schedules cannot be stored before the cluster's first start."""

    def __init__(self) -> None:
        super().__init__(
            "the database has no partitions yet, so no master would fire a schedule; "
            "start a master on it first"
        )


class PartitionsDiffer(SqlError):
    """The number of partitions is fixed when a cluster first starts."""

    def __init__(self, stored: int, wanted: int) -> None:
        self.stored, self.wanted = stored, wanted
        super().__init__(
            f"the database was set up with {stored} partitions, this process is configured for "
            f"{wanted}; set partitions to {stored} everywhere"
        )


class SchemaTooNew(SqlError):
    """The database's schema was made by a newer version of Shoal."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        super().__init__(
            f"the database has schema revision {revision}, which this version of Shoal does not "
            "know; upgrade this process to the version that migrated the database"
        )


class SchemaTooOld(SqlError):
    """The database's schema is older than the first revision of this version of Shoal."""

    def __init__(self, revision: str, first: str) -> None:
        self.revision, self.first = revision, first
        super().__init__(
            f"the database has schema revision {revision}; this version of Shoal migrates only "
            f"databases of revision {first} or newer. Start a master of Shoal 0.1.0 on it once, "
            f"which brings it to revision {first}, stop it, and start this version again"
        )


class SchemaMissing(SqlError):
    """A table or column is missing: the database was never migrated, or to an older revision."""


class StatementFailed(SqlError):
    """The database refused a statement for a reason that has no class of its own."""
