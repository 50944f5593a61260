"""How attempts end and how long they take: drawn from history, or as recorded."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from shoal.core.definition.model import TaskSpec, TimeoutAction
from shoal.core.runs.run import Attempt
from shoal.core.runs.states import TaskSignal
from shoal.insight.simulate.engine.chance import key_of, mixed, quantile, share
from shoal.insight.simulate.model import TaskHistory

_LOOKS, _GIVES, _PAUSES = range(3)  # what a further draw is for
_HALF = 1 << 32
_LOOK_AGAIN_S = 60.0  # if nothing is known; what the task types that wait take by default
_NOTHING: Mapping[str, str] = {}


class SimulatedOutcome(NamedTuple):
    """The end of one attempt. ``seconds``: from the start of its program to the end of it."""

    seconds: float
    signal: TaskSignal  # SUCCEED, FAIL or RESCHEDULE
    outputs: Mapping[str, str] = _NOTHING
    again_s: float = 0.0  # with RESCHEDULE


class Outcomes(Protocol):
    """Says how the attempts of one task end."""

    def of(self, run_key: int, attempt: Attempt) -> SimulatedOutcome:
        """Return how an attempt ends. ``run_key`` names its run, the same in each simulation."""
        ...


class Drawn:
    """Draws the attempts of one task from its history."""

    def __init__(self, name: str, history: TaskHistory) -> None:
        self._key = key_of(name)
        self._history = history
        self._failed = history.failed_seconds or history.seconds
        self._succeeded = history.seconds or history.failed_seconds
        self._waits = bool(history.looks) and history.looks[-1] > 0

    def of(self, run_key: int, attempt: Attempt) -> SimulatedOutcome:
        """Return how an attempt ends."""
        history = self._history
        bits = mixed(run_key, self._key, attempt.number)
        if self._waits and (again := self._look(run_key, attempt, bits)) is not None:
            return again
        # One half of the bits says whether it fails, the other how long it takes.
        if history.failure and (bits >> 32) / _HALF < history.failure:
            return SimulatedOutcome(self._seconds(self._failed, bits), TaskSignal.FAIL)
        seconds = self._seconds(self._succeeded, bits)
        if not history.outputs:
            return SimulatedOutcome(seconds, TaskSignal.SUCCEED)
        index = int(share(mixed(bits, _GIVES)) * len(history.outputs))
        return SimulatedOutcome(seconds, TaskSignal.SUCCEED, history.outputs[index])

    def _look(self, run_key: int, attempt: Attempt, bits: int) -> SimulatedOutcome | None:
        """Return a look that finds nothing; None: this one finds."""
        looks = self._history.looks
        wanted = quantile(looks, share(mixed(run_key, self._key, -1, _LOOKS)))
        if attempt.looks >= round(wanted):
            return None
        pauses = self._history.again_s
        again_s = quantile(pauses, share(mixed(bits, _PAUSES))) if pauses else _LOOK_AGAIN_S
        seconds = self._seconds(self._succeeded, bits)
        return SimulatedOutcome(seconds, TaskSignal.RESCHEDULE, again_s=again_s)

    @staticmethod
    def _seconds(samples: tuple[float, ...], bits: int) -> float:
        return quantile(samples, (bits % _HALF) / _HALF)


class Repeated:
    """The attempts of one task as they were recorded; drawn where there is no record.

    ``recorded`` is by ``run_key`` and the number of the attempt.
    """

    def __init__(
        self, recorded: Mapping[tuple[int, int], SimulatedOutcome], drawn: Outcomes
    ) -> None:
        self._recorded, self._drawn = recorded, drawn

    def of(self, run_key: int, attempt: Attempt) -> SimulatedOutcome:
        """Return how an attempt ended, or would."""
        found = self._recorded.get((run_key, attempt.number))
        return self._drawn.of(run_key, attempt) if found is None else found


def within_timeout(outcome: SimulatedOutcome, task: TaskSpec, attempt: Attempt) -> SimulatedOutcome:
    """Return the end of an attempt that its worker ends at the task's timeout.

    Of one that looks again and again no worker sees the whole time: masters end it.
    """
    if task.timeout is None or outcome.seconds <= task.timeout or attempt.looks:
        return outcome
    if task.timeout_action is TimeoutAction.WARN:
        return outcome
    return SimulatedOutcome(task.timeout, TaskSignal.FAIL)
