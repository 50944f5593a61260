"""A long run in parts: each has a cluster, a seed and a stored result of its own.

A run that was interrupted begins again at the first part that has no result yet. The same command
in two terminals shares the parts, and both print the report of all.
"""

import fcntl
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from pydantic import TypeAdapter

from tests.chaos.judging.verdict import Verdict
from tests.chaos.plan import Outcome
from tests.chaos.records import STALL, FaultRecord
from tests.chaos.reports.figures import FIGURES

FAULTS = 80  # of a part, at most: every kind once, and no history that takes minutes to judge


@dataclass
class Result:
    """Everything one run has found."""

    verdict: Verdict
    outcome: Outcome
    exits: list[str] = field(default_factory=list)  # roles that ended by themselves
    leftovers: list[str] = field(default_factory=list)
    open_instances: list[int] = field(default_factory=list)
    duration_s: float = 0.0
    commit: str = ""
    session_timeout_s: float = 4.0

    @property
    def injected(self) -> list[FaultRecord]:
        """All faults; pauses of the machine itself are left out."""
        return [record for record in self.outcome.records if record.name != STALL]

    @property
    def harmless(self) -> list[FaultRecord]:
        """Faults without an effect that could be shown. Such a fault proves nothing."""
        return [record for record in self.injected if not record.bit]

    @property
    def missed(self) -> list[str]:
        """The ids of the figures whose target was not reached."""
        return [
            figure.id
            for figure in FIGURES
            if (records := figure.records(self.injected))
            and not figure.is_met(self.verdict, records, self.session_timeout_s)
        ]

    @property
    def is_sound(self) -> bool:
        """Whether nothing wrong was found, however little the run has tried."""
        return self.verdict.is_clean and not (
            self.outcome.trouble or self.leftovers or self.open_instances
        )

    @property
    def is_clean(self) -> bool:
        """Whether nothing wrong was found, and everything that was asked for was tried and met."""
        return self.is_sound and not (self.outcome.skipped or self.harmless or self.missed)


@dataclass(frozen=True)
class Part:
    """A share of the faults; ``number`` counts from 1."""

    number: int
    seed: int
    faults: int

    def file(self, folder: Path) -> Path:
        """Return where the result belongs."""
        return folder / f"part-{self.number:03}-seed-{self.seed}-faults-{self.faults}.json"


def split(seed: int, faults: int) -> list[Part]:
    """Return parts of about the same size. Part n has the seed ``seed`` + n - 1."""
    count = max(1, -(-faults // FAULTS))
    return [
        Part(number, seed + number - 1, (faults + count - number) // count)
        for number in range(1, count + 1)
    ]


_RESULT = TypeAdapter(Result)


def load(file: Path) -> Result | None:
    """Return the stored result of a part; None if it has none yet."""
    return _RESULT.validate_json(file.read_bytes()) if file.exists() else None


def shared(parts: Sequence[Part], folder: Path, judge: Callable[[Part], Result]) -> list[Result]:
    """Return the results of all parts, in their order, of which other processes may judge some.

    A part that another process is at is left for the end: if that process has stored no result by
    then, it is judged here.
    """
    results: dict[int, Result] = {}
    for wait in (False, True):
        for part in parts:
            if part.number in results:
                continue
            with _alone(part.file(folder), wait=wait) as ours:
                if ours:
                    results[part.number] = judge(part)
    return [results[part.number] for part in parts]


@contextmanager
def _alone(file: Path, *, wait: bool) -> Iterator[bool]:
    """Keep other processes away from a part as long as this lasts; yield False if one has it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True


def store(file: Path, result: Result) -> None:
    """Keep the result of a part: whole, or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_bytes(_RESULT.dump_json(result, indent=1))
    draft.rename(file)


def merge(results: Sequence[Result]) -> Result:
    """Return what all parts found together."""
    if len(results) == 1:
        return results[0]
    verdicts = [result.verdict for result in results]
    outcomes = [result.outcome for result in results]
    counts: Counter[str] = Counter()
    for verdict in verdicts:
        counts.update(verdict.counts)
    names = sorted({name for verdict in verdicts for name in verdict.samples})
    return Result(
        Verdict(
            [offence for verdict in verdicts for offence in verdict.offences],
            dict(counts),
            {
                name: [s for verdict in verdicts for s in verdict.samples.get(name, ())]
                for name in names
            },
        ),
        Outcome(
            [record for outcome in outcomes for record in outcome.records],
            list(_named(results, [outcome.skipped for outcome in outcomes])),
            list(_named(results, [outcome.trouble for outcome in outcomes])),
        ),
        list(_named(results, [result.exits for result in results])),
        list(_named(results, [result.leftovers for result in results])),
        list(chain.from_iterable(result.open_instances for result in results)),
        sum(result.duration_s for result in results),
        ", ".join(sorted({result.commit for result in results})),
        max(result.session_timeout_s for result in results),
    )


def _named(results: Sequence[Result], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    for number, of_part in enumerate(lines[: len(results)], 1):
        yield from (f"part {number}: {line}" for line in of_part)
