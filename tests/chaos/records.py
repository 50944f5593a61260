"""What is written down about each injected fault."""

import time
from dataclasses import dataclass

STALL = "machine-stall"  # the name of a record of the machine's own pause, which is not a fault


def now_s() -> float:
    """Seconds since boot, the clock of every record: rows of one machine compare."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True)
class FaultRecord:
    """One fault. Times are ``now_s()``."""

    name: str  # the kind: "kill-master"
    target: str  # what it hit: "master-2"
    began_s: float
    healed_s: float  # when the cause was gone, and the role started again if it had died
    recovered_s: float | None  # when the cluster was whole again; None: not within its bound
    bit: bool  # whether it had an effect that can be shown
    evidence: str  # that effect in words: "process 4711 ended by signal 9"
    # When live masters had all partitions again, for faults that take a master away.
    taken_over_s: float | None = None
    # Processes of the workload that were stopped with everything above them. Such a process can
    # not be killed by its worker while it is stopped: its lock lasts until it is thawed.
    frozen_pids: frozenset[int] = frozenset()
    # Whether no other fault was there at the same time. If one was, times are not this one's own.
    alone: bool = True
    # When its own cause began to go: what waits for that may go on before all is whole, and before
    # ``healed_s``, the end of the last of several faults at once.
    lifted_s: float | None = None
    # Whether attempts may be LOST by it. Otherwise each one that is was given up without reason.
    costs_workers: bool = True
    # Whether attempts may FAIL by it without the task's own doing.
    spoils_disk: bool = False

    @property
    def recovery_s(self) -> float | None:
        """How long the cluster took to be whole again after the cause was gone."""
        return None if self.recovered_s is None else self.recovered_s - self.healed_s

    @property
    def takeover_s(self) -> float | None:
        """How long partitions of a vanished master had no live owner, at most."""
        return None if self.taken_over_s is None else self.taken_over_s - self.began_s
