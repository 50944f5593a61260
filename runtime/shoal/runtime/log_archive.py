"""Finished logs in a storage, where they outlive the worker that has run the attempt.

An object is ``CLUSTER/THOUSAND/INSTANCE/TASK_INSTANCE.log``: CLUSTER is made of the uid that a
cluster's database has, so clusters that share a storage do not meet; THOUSAND is INSTANCE // 1000,
so no folder has very many. Everything here blocks.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Self

from shoal.runtime.storage import ObjectMissing, Purpose, Storage, cluster_folder

if TYPE_CHECKING:
    from shoal.runtime.settings import ClusterSettings

_NUMBER = r"[0-9]{1,19}"
LOGS = Purpose(
    "finished logs",
    "logs_url",
    re.compile(rf"[0-9a-f]{{32}}/{_NUMBER}/{_NUMBER}/{_NUMBER}\.log"),
)
_PER_FOLDER = 1_000  # instances


class LogArchive:
    """The logs of one cluster, by the ids of workflow instances and task instances.

    Logs are written, listed and removed under ``cluster``, its uid. They are read under the first
    of the uids that ``named`` returns for a task instance under which there is one: the cluster may
    have had another when it ran. Without ``named`` that is ``cluster``, too.
    """

    def __init__(
        self, url: str, cluster: str, named: Callable[[int], Sequence[str]] | None = None
    ) -> None:
        self._storage = Storage(url, LOGS)
        self._cluster = cluster_folder(cluster)
        self._named = named

    @classmethod
    def of(
        cls,
        settings: "ClusterSettings",
        cluster: str,
        named: Callable[[int], Sequence[str]] | None = None,
    ) -> Self | None:
        """Return the archive that the settings name; None: there is to be none."""
        return cls(settings.logs_url, cluster, named) if settings.logs_url else None

    def put(self, instance: int, task: int, log: BinaryIO) -> int:
        """Store a log, complete or not at all; return its bytes. Raises StorageError, OSError."""
        return self._storage.put(self._name(instance, task), log)

    def size(self, instance: int, task: int) -> int:
        """Return the bytes of a log. Raises ObjectMissing, StorageError."""
        return self._found(instance, task)[1]

    def read(self, instance: int, task: int, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` up to ``end``. Raises ObjectMissing, StorageError."""
        if self._named is None:
            return self._storage.read_range(self._name(instance, task), start, end)
        return self._storage.read_range(self._found(instance, task)[0], start, end)

    def thousands(self) -> list[int]:
        """Return which thousands of instances have logs. Raises StorageError."""
        return _numbers(self._storage.names_in(self._cluster))

    def instances(self, thousand: int) -> list[int]:
        """Return the instances of a thousand that have logs. Raises StorageError."""
        return _numbers(self._storage.names_in(f"{self._cluster}/{thousand}"))

    def written_s(self, instance: int) -> float | None:
        """Return when the last log of an instance came, in seconds since 1970; None: not known.

        Raises StorageError.
        """
        return self._storage.written_s(self._folder(instance))

    def remove(self, instance: int) -> None:
        """Remove all logs of an instance. Raises StorageError."""
        self._storage.remove_folder(self._folder(instance))

    def _folder(self, instance: int) -> str:
        return f"{self._cluster}/{_place(instance)}"

    def _name(self, instance: int, task: int) -> str:
        return f"{self._folder(instance)}/{task}.log"

    def _found(self, instance: int, task: int) -> tuple[str, int]:
        """Return the name of a log and its bytes. Raises ObjectMissing, StorageError."""
        name = self._name(instance, task)
        for uid in self._named(task) if self._named is not None else ():
            former = f"{cluster_folder(uid)}/{_place(instance)}/{task}.log"
            with suppress(ObjectMissing):
                return former, self._storage.size(former)
        return name, self._storage.size(name)


def _place(instance: int) -> str:
    return f"{instance // _PER_FOLDER}/{instance}"


def _numbers(names: list[str]) -> list[int]:
    return sorted(int(name) for name in names if re.fullmatch(_NUMBER, name))
