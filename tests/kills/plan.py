"""Which cases there are: all of it follows from the seed, the type and the number of a case."""

import itertools
import random
import re
from dataclasses import dataclass
from enum import StrEnum


class Target(StrEnum):
    """What is killed, or ``cancel``: the run is stopped in order."""

    RUNNER = "runner"  # the attempt's own process
    SHIM = "shim"
    LAUNCHER = "launcher"
    AGENT = "agent"
    WORKER = "worker"  # all its processes at once, as when its machine is switched off
    MASTER = "master"  # the owner of the run
    CANCEL = "cancel"

    @property
    def hurts_others(self) -> bool:
        """Whether other cases on the same cluster are killed with it."""
        return self not in {Target.RUNNER, Target.SHIM, Target.CANCEL}


class Phase(StrEnum):
    """The observed event from which the moment of a kill is counted."""

    LAUNCHED = "launched"  # the attempt has a process
    SUBMITTED = "submitted"  # its job is seen at the other side
    RUNNING = "running"  # the same; the moment is somewhere in the job's time
    ENDING = "ending"  # the same; the moment is around the job's end


#: In no other name that can stand beside it.
MARKER = re.compile(r"kill_[a-z]+_\d{4}")
_SECONDS = (1.0, 3.0)  # that a job takes
_AROUND_S = 0.5  # how far moments around the end of a job are spread
_AFTER_SUBMISSION_S = 0.15


@dataclass(frozen=True)
class Case:
    """One run of one task, and the kill that it is given. ``chance`` is in 0 … 1."""

    kind: str
    number: int
    target: Target
    phase: Phase
    seconds: float  # that its job takes
    chance: float
    idempotent: bool
    stubborn: bool  # makes itself hard to end, in the way of its type

    @property
    def marker(self) -> str:
        """What the other side shows of the case: also the name of its workflow."""
        return f"kill_{self.kind.lower()}_{self.number:04d}"

    @property
    def id(self) -> str:
        return f"{self.kind}:{self.number}"

    def delay_s(self, launch_s: float) -> float:
        """Return how long after the observed event the kill comes.

        ``launch_s``: how long it takes from the process to the job.
        """
        match self.phase:
            case Phase.LAUNCHED:
                return self.chance * launch_s
            case Phase.SUBMITTED:
                return self.chance * _AFTER_SUBMISSION_S
            case Phase.RUNNING:
                return self.chance * self.seconds
            case Phase.ENDING:
                return self.seconds + (self.chance - 0.4) * _AROUND_S


def draw(seed: int, kind: str, count: int) -> list[Case]:
    """Return the first cases of a kind. Every pair of target and phase comes as often."""
    dice = random.Random(f"{seed}:{kind}")
    pairs = list(itertools.product(Target, Phase))
    order: list[tuple[Target, Phase]] = []
    while len(order) < count:
        order += dice.sample(pairs, len(pairs))
    # Each case from dice of its own: it is the same however many there are.
    return [_case(seed, kind, number, *order[number]) for number in range(count)]


def _case(seed: int, kind: str, number: int, target: Target, phase: Phase) -> Case:
    dice = random.Random(f"{seed}:{kind}:{number}")
    return Case(
        kind,
        number,
        target,
        phase,
        seconds=round(dice.uniform(*_SECONDS), 2),
        chance=round(dice.random(), 3),
        idempotent=dice.random() < 0.5,
        stubborn=dice.random() < 0.5,
    )
