"""What the services of a master work with, where a test makes them one by one."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from shoal.master.engine.engine import Engine
from shoal.master.services.service import MasterContext, UpkeepJobs
from shoal.master.settings import MasterSettings
from shoal.sql import Database
from tests.support.clock import utc_now


def ignore(_partitions: Iterable[int]) -> None:
    """Notify no owner."""


def context_of(
    database: Database,
    engine: Engine,
    *,
    clock: Callable[[], datetime] = utc_now,
    partitions: int = 8,
    notify_owners: Callable[[Iterable[int]], None] = ignore,
    **settings: Any,
) -> MasterContext:
    """Return a context; its services poll every minute unless ``settings`` say otherwise."""
    options = {"scan_interval_s": 60.0, "sweep_interval_s": 60.0} | settings
    return MasterContext(
        database=database,
        engine=engine,
        clock=clock,
        partitions=partitions,
        settings=MasterSettings(**options),
        jobs=UpkeepJobs(clock, longest_sleep_s=0.05),
        notify_owners=notify_owners,
    )
