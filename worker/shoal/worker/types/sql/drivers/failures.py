"""What an error of a database says to people, and to the attempt."""

from collections.abc import Collection

from shoal.core.data_sources import DataSource
from shoal.core.errors import shortened
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.drivers.syntax import reads
from shoal.worker.types.sql.session import ErrorVerdict

_LONGEST = 2_000  # characters of what a database says about one error


class SqlFailed(WorkFailed):
    """The database refused or lost a statement. ``code`` is its own name for the error."""

    def __init__(self, text: str, verdict: ErrorVerdict, code: str | None = None) -> None:
        self.verdict, self.code = verdict, code
        suffix = f" ({code})" if code else ""
        # What is ambiguous is not tried again either, unless the task says that it may be.
        super().__init__(
            shortened(text, _LONGEST) + suffix, permanent=verdict is not ErrorVerdict.RETRY
        )


class StatementCancelled(SqlFailed):
    """The statement was cancelled by ``Session.cancel``, or not begun because of it."""

    def __init__(self) -> None:
        super().__init__("the statement was cancelled", ErrorVerdict.RETRY)


class StatementTimedOut(SqlFailed):
    """The statement did not end within its time."""

    def __init__(self, limit_s: float | None, code: str | None = None) -> None:
        within = f" within {limit_s:g} s" if limit_s else " in time"
        super().__init__(f"the statement did not end{within}", ErrorVerdict.RETRY, code)


def require_reading(statement: str, also: Collection[str] = ()) -> None:
    """Raise SqlFailed unless a statement begins like one that only reads.

    For read-only sessions of databases that have no such sessions themselves. ``also``: further
    first words, in capitals, of statements that only read in this database.
    """
    if not reads(statement, also=also):
        text = "the task is read only: only SELECT, VALUES, SHOW, EXPLAIN and the like are allowed"
        raise SqlFailed(text, ErrorVerdict.PERMANENT)


def cannot_connect(source: DataSource, reason: str, *, permanent: bool = False) -> WorkFailed:
    """Return the error for a data source that cannot be used; ``reason`` says what to do."""
    return WorkFailed(f"{described(source)}: {reason}", permanent=permanent)


def described(source: DataSource) -> str:
    """Return a data source as messages name it: no password, no options."""
    port = f":{source.port}" if source.port else ""
    place = "/".join(filter(None, (f"{source.host}{port}", source.database)))
    return f"data source {source.name!r} ({source.kind} {place})"


def lost(*, in_commit: bool, text: str, code: str | None = None) -> SqlFailed:
    """Return the error for a connection that broke.

    ``in_commit``: the changes may be there, or not; that cannot be known from here.
    """
    if not in_commit:
        return SqlFailed(f"the connection was lost: {text}", ErrorVerdict.RETRY, code)
    advice = (
        "the connection was lost while changes were being committed: they may be in the database "
        "or not. Look there before the task is run again"
    )
    return SqlFailed(f"{advice}: {text}", ErrorVerdict.AMBIGUOUS, code)
