"""Errors inside a master.

::

    ShoalError
    └── MasterError
        ├── PartitionNotOwned  the partition belongs to another master now
        ├── NotStored          the database did not take the decision; try again (retriable)
        └── Quarantined        the instance is quarantined: this version cannot work with it
"""

from typing import ClassVar

from shoal.core.errors import ShoalError


class MasterError(ShoalError):
    """Base of this branch."""


class PartitionNotOwned(MasterError):
    """This master does not own the partition, or has lost it."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        super().__init__(f"this master does not own partition {partition}; ask its present owner")


class NotStored(MasterError):
    """A decision could not be stored, and nothing of it happened."""

    retriable: ClassVar[bool] = True


class Quarantined(MasterError):
    """Nothing is done with the instance: its rows or its state are beyond this version."""

    def __init__(self, instance_id: int, reason: str) -> None:
        self.instance_id = instance_id
        super().__init__(
            f"instance {instance_id} is quarantined: {reason}; "
            f"`shoal recover {instance_id}` tries again, as do masters after an upgrade"
        )
