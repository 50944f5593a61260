"""Where messages lie.

::

    /messages/<topic>                       {"version": 1, "partitions": 128}, fixed at first use
    /messages/<topic>/<NNN>/owner           the consumer that has the partition (ephemeral)
                            fence           shuts out the owners before (recipes/fence.py)
                            ledger          deliveries so far of messages not acknowledged (JSON)
                            tail            the next message's number, and more (JSON)
                            ids/<g>/<xx>/…  ids that were put of late, generation by generation
                            waiting/<b>/<n> a message, until it is acknowledged
                            dead/<b>/<n>    a message that was delivered too often

Numbers grow by one with each message of the partition. A bucket ``<b>`` has those of 1000 numbers
and goes when all of them are dealt with; so no znode has more than about a thousand children.
"""

import hashlib
from dataclasses import dataclass

from shoal.coordination import znodes

BUCKET = 1000
ID_BUCKETS = 64


@dataclass(frozen=True, slots=True)
class PartitionPaths:
    """The znodes of one partition of a topic."""

    topic: str
    partition: int

    @property
    def root(self) -> str:
        return f"{znodes.messages(self.topic)}/{self.partition:03d}"

    @property
    def owner(self) -> str:
        return f"{self.root}/owner"

    @property
    def fence(self) -> str:
        return f"{self.root}/fence"

    @property
    def ledger(self) -> str:
        return f"{self.root}/ledger"

    @property
    def tail(self) -> str:
        return f"{self.root}/tail"

    @property
    def waiting(self) -> str:
        return f"{self.root}/waiting"

    @property
    def dead(self) -> str:
        return f"{self.root}/dead"

    @property
    def ids(self) -> str:
        return f"{self.root}/ids"

    def waiting_bucket(self, bucket: int) -> str:
        return f"{self.waiting}/{bucket:09d}"

    def message(self, number: int) -> str:
        return f"{self.waiting_bucket(number // BUCKET)}/{number:012d}"

    def dead_letter(self, number: int) -> str:
        return f"{self.dead}/{number // BUCKET:09d}/{number:012d}"

    def id(self, generation: int, message_id: str) -> str:
        """Any text can be an id: its digest is the name."""
        digest = hashlib.sha256(message_id.encode()).hexdigest()
        return f"{self.ids}/{generation:06d}/{int(digest[:8], 16) % ID_BUCKETS:02d}/{digest[:32]}"


def parent(path: str) -> str:
    return path.rpartition("/")[0]
