"""What can be wrong with a run of the jobs.

JobsError
├── BadDays          --days is not understood
├── UnknownJob       --only names no job
├── NoHistoryNamed   nothing says where the history is
├── MissingFile      a file that a manifest names is not there
├── NoSpark          PySpark or Java is not there
└── SparkEnded       Spark's process has gone in the middle
"""

from collections.abc import Iterable

from shoal.core.errors import ShoalError


class JobsError(ShoalError):
    """The jobs cannot run, or did not end well. Results of earlier runs are unchanged."""


class BadDays(JobsError):
    """Days that are not understood."""

    def __init__(self, given: str, why: str) -> None:
        super().__init__(
            f"--days {given}: {why}; give DAY or FROM:TO, such as 2026-01-01:2026-01-31"
        )


class UnknownJob(JobsError):
    """A name that no job has."""

    def __init__(self, names: Iterable[str], known: Iterable[str]) -> None:
        given = ", ".join(sorted(names))
        super().__init__(f"--only {given}: no such job; there are {', '.join(sorted(known))}")


class NoHistoryNamed(JobsError):
    """Neither an argument nor a setting says where the history is."""

    def __init__(self) -> None:
        super().__init__(
            "no history is named: give --history the folder or URL that `shoal insight status` "
            "shows, or set history_url in section [cluster] of the settings"
        )


class MissingFile(JobsError):
    """A history that cannot be read as a whole."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"history damaged at {place}: a manifest names it, but it is not there; restore it "
            "from a copy, or export anew"
        )


class NoSpark(JobsError):
    """What Spark needs is not installed."""


class SparkEnded(JobsError):
    """Spark, or one of its processes, has gone in the middle."""

    def __init__(self, job: str, why: str) -> None:
        super().__init__(
            f"Spark failed at {job}: {why}; the results of this job are as they were, so run the "
            "same command again (with more memory if it was killed for that: --memory 2g)"
        )
