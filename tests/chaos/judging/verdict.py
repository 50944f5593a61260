"""What the checker found: offences, each with what it concerns, and counts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """The kinds of offences; none of them may occur."""

    LOST = "lost"  # accepted or reported as done, but never done
    DUPLICATE = "concurrent duplicate"  # two runs of one task of one instance at once
    RERUN = "unfounded re-run"  # ran again, or was given up, without a reason
    STUCK = "stuck"  # not over when everything had the time to end
    ILLEGAL = "illegal"  # a history that the rules of workflows and fencing do not allow
    LEAKED = "leaked"  # a process, lock or entry that outlived its purpose
    LOG = "log mismatch"  # a log that is not what the task printed
    BLIND = "nothing to judge"  # the checker was given too little to find anything


@dataclass(frozen=True)
class Offence:
    """One thing that must not be. ``rule`` names the check, ``text`` the facts."""

    kind: Kind
    rule: str
    text: str
    instance: int | None = None
    task: str | None = None
    attempt: int | None = None

    def __str__(self) -> str:
        who = [
            f"instance {self.instance}" if self.instance is not None else "",
            self.task or "",
            f"attempt {self.attempt}" if self.attempt is not None else "",
        ]
        return f"{self.kind} ({self.rule}): {' '.join(filter(None, (*who, '—', self.text)))}"


@dataclass(frozen=True)
class Verdict:
    """All offences; ``counts`` of what was judged and ``samples`` of times in seconds, by name."""

    offences: Sequence[Offence]
    counts: Mapping[str, int] = field(default_factory=dict)
    samples: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        return not self.offences

    @property
    def by_kind(self) -> Counter[Kind]:
        return Counter(offence.kind for offence in self.offences)

    @property
    def lost(self) -> int:
        return self.by_kind[Kind.LOST]

    @property
    def concurrent_duplicates(self) -> int:
        return self.by_kind[Kind.DUPLICATE]

    @property
    def stuck(self) -> int:
        return self.by_kind[Kind.STUCK]

    @property
    def illegal(self) -> int:
        return self.by_kind[Kind.ILLEGAL]

    @property
    def leaked(self) -> int:
        return self.by_kind[Kind.LEAKED]

    @property
    def log_mismatch(self) -> int:
        return self.by_kind[Kind.LOG]

    @property
    def reruns(self) -> int:
        """Completed runs that had to be done again because their worker was lost."""
        return self.counts.get("re-runs", 0)
