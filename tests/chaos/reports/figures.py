"""The reliability figures that the suite measures, and how records of faults prove them.

Targets are in terms of T, the ZooKeeper session timeout.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf

from tests.chaos.judging.verdict import Verdict
from tests.chaos.records import FaultRecord

# Samples of the verdict.
LOSS_DELAY = "seconds from a worker's death to LOST"
STOP_DELAY = "seconds from a stop to the end of its instance"

Times = Callable[[Verdict, Sequence[FaultRecord]], Sequence[float]]


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    ``faults`` are beginnings of names. ``times`` are held against ``bound_s`` at ``quantile``.
    Whatever the figure, the verdict must be clean as well.
    """

    id: str
    faults: tuple[str, ...]
    target: str
    times: Times
    bound_s: Callable[[float], float]
    quantile: float = 0.99
    timed: str = "recovery"

    def records(self, faults: Sequence[FaultRecord]) -> list[FaultRecord]:
        """Return the faults that speak of this figure."""
        return [fault for fault in faults if fault.name.startswith(self.faults)]

    def is_met(
        self, verdict: Verdict, records: Sequence[FaultRecord], session_timeout_s: float
    ) -> bool:
        """Whether the target is reached: no offence, every fault recovered from, in time."""
        if not verdict.is_clean or any(record.recovered_s is None for record in records):
            return False
        times = self.times(verdict, records)
        return not times or percentile(times, self.quantile) <= self.bound_s(session_timeout_s)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def recoveries(_: Verdict | None, faults: Sequence[FaultRecord]) -> list[float]:
    """From the end of the cause until the cluster was whole, of faults that came alone."""
    return [f.recovery_s for f in faults if f.alone and f.recovery_s is not None]


def takeovers(_: Verdict | None, faults: Sequence[FaultRecord]) -> list[float]:
    """From the fault until live masters had all partitions, of faults that came alone."""
    return [f.takeover_s for f in faults if f.alone and f.takeover_s is not None]


def losses(verdict: Verdict, _: Sequence[FaultRecord]) -> Sequence[float]:
    """From a worker's death until its attempts were LOST, and so submitted again."""
    return verdict.samples.get(LOSS_DELAY, ())


def stops(verdict: Verdict, _: Sequence[FaultRecord]) -> Sequence[float]:
    """From a stop until its instance had ended, where no fault was near."""
    return verdict.samples.get(STOP_DELAY, ())


def _within(base_s: float, sessions: float = 0.0) -> Callable[[float], float]:
    return lambda session_s: sessions * session_s + base_s


def _untimed(_: float) -> float:
    """No time is asked for: only what happens counts."""
    return inf


_NOTHING_TWICE = "0 lost, 0 concurrent duplicates"

FIGURES: Sequence[Figure] = (
    Figure(
        "R1",
        ("kill-master",),
        f"{_NOTHING_TWICE}, no healthy task again; takeover p99 ≤ T + 3 s",
        takeovers,
        _within(3, sessions=1),
        timed="takeover",
    ),
    Figure(
        "R2",
        ("kill-worker", "kill-launcher", "kill-watchdog"),
        f"{_NOTHING_TWICE}; submitted again p99 ≤ T + 3 s after the death",
        losses,
        _within(3, sessions=1),
        timed="LOST after",
    ),
    Figure(
        "R3",
        ("pause-master",),
        "0 writes of a former owner; whole again p99 ≤ T + 5 s",
        recoveries,
        _within(5, sessions=1),
    ),
    Figure(
        "R4",
        ("pause-worker",),
        "tasks die before anybody may take over: 0 overlaps",
        recoveries,
        _within(5, sessions=1),
    ),
    Figure(
        "R5",
        ("freeze-worker",),
        "results of the frozen node refused, overlaps counted",
        recoveries,
        _within(5, sessions=1),
    ),
    Figure(
        "R6",
        ("cut-zookeeper", "flap-zookeeper"),
        f"{_NOTHING_TWICE}; the node is back ≤ T + 5 s after the cut heals",
        recoveries,
        _within(5, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "R7",
        ("cut-database",),
        "no half commit, 0 lost; whole again ≤ T + 5 s",
        recoveries,
        _within(5, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "R9",
        ("kill-zookeeper",),
        "sessions kept, no failover; whole again p99 ≤ 3 s",
        recoveries,
        _within(3),
    ),
    Figure(
        "R10",
        ("roll-zookeeper",),
        "0 failovers, 0 lost",
        recoveries,
        _within(3),
    ),
    Figure(
        "R11",
        ("quorum-loss",),
        "nothing starts twice; whole again ≤ 10 s after the quorum is back",
        recoveries,
        _within(10),
        quantile=1.0,
    ),
    Figure(
        "R12",
        ("expire-session",),
        "as R3; registered anew ≤ T + 3 s",
        recoveries,
        _within(3, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "R14",
        ("restart-postgresql",),
        "0 lost, 0 illegal states; full speed ≤ 10 s after",
        recoveries,
        _within(10),
        quantile=1.0,
    ),
    Figure(
        "R15",
        ("postgresql-down",),
        "no task fails because of it; results committed ≤ 10 s after its return",
        recoveries,
        _within(10),
        quantile=1.0,
    ),
    Figure(
        "R17",
        ("power-cut",),
        "every instance ends without a human; whole again ≤ 60 s",
        recoveries,
        _within(60),
        quantile=1.0,
    ),
    Figure(
        "R18",
        ("failpoint",),
        "a crash at any step of a takeover, claim, dispatch or report is made good",
        recoveries,
        _untimed,
    ),
    Figure(
        "R19",
        ("swallow",),
        _NOTHING_TWICE + " when answers are lost",
        recoveries,
        _untimed,
    ),
    Figure(
        "R20",
        ("disk-full",),
        "tasks fail or their logs say what is missing; the worker lives",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "R25",
        ("kill-api",),
        "what is stopped ends ≤ 15 s, 0 survivors, nobody else hurt; no command lost",
        stops,
        _within(15),
        quantile=1.0,
        timed="stopped after",
    ),
    Figure(
        "R27",
        ("fail-",),
        "every point of a process fails once: it goes on, or ends and is replaced ≤ 10 s",
        recoveries,
        _within(10),
        quantile=1.0,
    ),
    Figure(
        "G1",
        ("clock-jump",),
        "nothing fires early, twice or never; no healthy run stops",
        recoveries,
        _within(5, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G2",
        ("silent-failover", "slow-database"),
        "work goes on ≤ T + 10 s after",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G3",
        ("master-without-database",),
        "others have its partitions ≤ T + 10 s after it lost the database",
        takeovers,
        _within(10, sessions=1),
        quantile=1.0,
        timed="takeover",
    ),
    Figure(
        "G4",
        ("no-descriptors", "no-processes", "no-memory"),
        "no task fails because of it; the worker takes work again ≤ T + 10 s after",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G5",
        ("delete-", "junk-"),
        f"{_NOTHING_TWICE}; whole again ≤ T + 10 s",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G6",
        ("wipe-zookeeper",),
        "whole again without a restart by hand ≤ T + 20 s after ZooKeeper is back",
        recoveries,
        _within(20, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G10",
        ("stranger-",),
        f"{_NOTHING_TWICE}; whole again ≤ T + 10 s",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G7",
        ("one-way", "cut-worker", "cut-master", "cut-host", "refuse-"),
        f"{_NOTHING_TWICE}; whole again ≤ T + 10 s after packets pass again",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G8",
        ("stall-",),
        f"{_NOTHING_TWICE}; whole again ≤ T + 10 s after the loop turns again",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G11",
        (
            "locks-",
            "long-transaction",
            "freeze-database",
            "hung-standby",
            "read-only-database",
            "moved-",
        ),
        f"{_NOTHING_TWICE}; whole again ≤ T + 10 s after the others in the database are done",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G12",
        ("no-log-archive", "no-resources", "hung-channel"),
        "no log and no alert is lost, other tasks go on; whole again ≤ T + 10 s",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G14",
        ("slow-disk", "names-of"),
        f"{_NOTHING_TWICE}; whole again ≤ T + 10 s after disks are quick and names are known",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G13",
        ("flood-",),
        "runs of other projects end meanwhile; whole again ≤ T + 10 s",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
    Figure(
        "G9",
        ("purge-",),
        "what goes has gone whole, what is open stays; whole again ≤ T + 10 s",
        recoveries,
        _within(10, sessions=1),
        quantile=1.0,
    ),
)
