"""What a master cannot work with and leaves alone, so that it stops nothing else."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Kind(StrEnum):
    """What is quarantined."""

    INSTANCE = "instance"  # nothing is done with it: its row, its definition or its state
    COMMAND = "command"  # it stays pending
    SCHEDULE = "schedule"  # it does not fire; its fire times count as missed later
    BACKFILL = "backfill"  # it starts nothing more
    GROUP = "concurrency group"  # its slots are not given


@dataclass(frozen=True)
class QuarantinedItem:
    """One quarantined thing. ``item``: its id as text, or its name."""

    kind: Kind
    item: str
    partition: int
    reason: str
    tries: int  # how often it was tried so far
    since: datetime
