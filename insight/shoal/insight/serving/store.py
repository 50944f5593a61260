"""The folder of results, as who loads them sees it. Everything here blocks."""

import re
from datetime import date

from shoal.insight.history.store import HistoryStore
from shoal.insight.serving import marks
from shoal.runtime.storage import Purpose, Storage

_JOB = re.compile(r"[a-z][a-z_]{0,49}")
_DAY = re.compile(r"day=([0-9]{4}-[0-9]{2}-[0-9]{2})")
RESULTS = Purpose(
    "the results of insight's jobs",
    "history_url",
    re.compile(rf"{marks.FOLDER}/{marks.NAME.pattern}|{_JOB.pattern}/{_DAY.pattern}/rows\.parquet"),
)


class ResultStore:
    """The results beside a history."""

    def __init__(self, history: HistoryStore) -> None:
        self._storage = Storage(history.results, RESULTS)

    @property
    def url(self) -> str:
        """Where the results are."""
        return self._storage.url

    def marks(self) -> list[str]:
        """Return the names of the marks there are, the oldest first. Raises StorageError."""
        return sorted(
            name for name in self._storage.names_in(marks.FOLDER) if marks.NAME.fullmatch(name)
        )

    def mark(self, name: str) -> bytes:
        """Return the content of a mark. Raises ObjectMissing, StorageError."""
        return self._content(f"{marks.FOLDER}/{name}")

    def remove_mark(self, name: str) -> None:
        """Remove a mark, which may be gone already. Raises StorageError."""
        self._storage.remove(f"{marks.FOLDER}/{name}")

    def jobs(self) -> list[str]:
        """Return the names of the jobs that have results, known or not. Raises StorageError."""
        names = self._storage.names_in("")
        return sorted(name for name in names if _JOB.fullmatch(name) and name != marks.FOLDER)

    def days(self, job: str) -> set[date]:
        """Return the days of which a job has results. Raises StorageError."""
        found = (_DAY.fullmatch(name) for name in self._storage.names_in(job))
        return {date.fromisoformat(match[1]) for match in found if match and _is_day(match[1])}

    def result(self, job: str, day: date) -> bytes:
        """Return the file of a result. Raises ObjectMissing, StorageError."""
        return self._content(f"{self._folder(job, day)}/rows.parquet")

    def remove(self, job: str, day: date) -> None:
        """Remove a result, which may be gone already. Raises StorageError."""
        self._storage.remove_folder(self._folder(job, day))

    def _content(self, name: str) -> bytes:
        return self._storage.read_range(name, 0, self._storage.size(name))

    @staticmethod
    def _folder(job: str, day: date) -> str:
        return f"{job}/day={day.isoformat()}"


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
