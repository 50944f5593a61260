"""How many workers there should be: up at once, down slowly, never below what runs."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Observation:
    """The load as of a moment ago, in units of work (tasks, messages …)."""

    backlog: int  # wait for a worker
    running: int  # are being worked on


@dataclass(frozen=True, slots=True)
class ScalingSettings:
    min_count: int = 1
    max_count: int = 10
    slots: int = 1  # units of work that one worker does at a time
    # How many workers one decision may add (the first ``min_count`` come at once) and take away.
    max_step_up: int = 4
    max_step_down: int = 1
    # So long there must have been too many, without a break, before any are taken away; then
    # it begins anew.
    cool_down_s: float = 600.0
    # There are too many only if this share of them has nothing to do: a load that swings by less
    # moves nothing.
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.min_count <= self.max_count:
            raise ValueError(
                f"min_count {self.min_count} and max_count {self.max_count}: "
                "the first is 0 or more and the second no less than the first"
            )
        for name in ("slots", "max_step_up", "max_step_down"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is 1 or more, not {getattr(self, name)}")
        if self.cool_down_s < 0 or not 0 <= self.tolerance < 1:
            raise ValueError(
                f"cool_down_s {self.cool_down_s} is 0 or more, "
                f"tolerance {self.tolerance} at least 0 and less than 1"
            )


@dataclass(frozen=True, slots=True)
class ScalingState:
    """What a decision needs to know of the ones before it.

    While there have been too many workers, ``low_since_s`` (on the clock of ``now_s``) says since
    when, and ``peak`` how many were needed at most since then.
    """

    count: int
    low_since_s: float | None = None
    peak: int = 0


def decide(
    state: ScalingState, observation: Observation, settings: ScalingSettings, now_s: float
) -> tuple[ScalingState, int]:
    """Return the new state and how many workers there should be. No IO, no clock.

    ``now_s`` are seconds on any clock that never runs backwards.
    """
    work = observation.backlog + observation.running
    needed = min(max(_ceil(work, settings.slots), settings.min_count), settings.max_count)
    if needed > state.count:
        count = max(min(needed, state.count + settings.max_step_up), settings.min_count)
        return ScalingState(count), count
    if needed > state.count * (1 - settings.tolerance) or needed == state.count:
        return ScalingState(state.count), state.count
    return _lower(state, needed, _ceil(observation.running, settings.slots), settings, now_s)


def _lower(
    state: ScalingState, needed: int, busy: int, settings: ScalingSettings, now_s: float
) -> tuple[ScalingState, int]:
    """There are too many: take some away if it has been so for long enough."""
    if state.low_since_s is None:
        state = replace(state, low_since_s=now_s, peak=needed)
    assert state.low_since_s is not None
    peak = max(state.peak, needed)
    if now_s < state.low_since_s + settings.cool_down_s:
        return replace(state, peak=peak), state.count
    # Busy workers stay, even if the limits have been lowered meanwhile.
    least = min(max(peak, busy), state.count)
    count = max(least, state.count - settings.max_step_down)
    return ScalingState(count, now_s, needed), count


def _ceil(units: int, per_worker: int) -> int:
    return -(-units // per_worker)
