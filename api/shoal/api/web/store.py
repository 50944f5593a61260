"""Where a handler reads and stores: the database, and the cluster's time that goes with it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from shoal.sql import Database, Recorder, UnitOfWork


@dataclass(frozen=True)
class Store:
    """One per process, and one for each request whose changes have an entry in the audit."""

    database: Database
    clock: Callable[[], datetime]

    def unit_of_work(self, *, read_only: bool = False) -> UnitOfWork:
        """Return a transaction; see ``Database.unit_of_work``."""
        return self.database.unit_of_work(read_only=read_only)

    def recording(self, recorder: Recorder) -> "Store":
        """Return a store whose transactions are committed with the entry of ``recorder``."""
        return Store(self.database.recording(recorder), self.clock)
