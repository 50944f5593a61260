"""A backfill: one workflow, run for many logical times. What is asked for, and its states.

What it consists of says ``plan``, what starts when ``window``. States change
nowhere else than by the tables here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    ValidationError,
    field_validator,
    model_validator,
)

from shoal.core.definition.fields import Level, Name, ParameterName, Priority, Strict, scalar_text
from shoal.core.definition.labels import Labels
from shoal.core.definition.selection import Selection, SelectionMode
from shoal.core.errors import ShoalError
from shoal.core.runs.states import IllegalTransition

MAX_RUNS = 10_000  # of one backfill: 27 years of days
MAX_PARALLEL = 500


class BackfillRefused(ShoalError, ValueError):
    """A backfill that cannot be planned. ``field``: of the request, the one to change."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        super().__init__(reason)


class By(StrEnum):
    """Which times of a range are its dates."""

    SCHEDULE = "schedule"  # the fire times of the workflow's enabled schedules
    DAY = "day"  # the midnights


class Only(StrEnum):
    """A backfill of what is not in order."""

    MISSING = "missing"  # dates that never ran
    FAILED = "failed"  # dates that ran, and not once with success


class DateOrder(StrEnum):
    """Which date goes first."""

    ASCENDING = "ascending"
    DESCENDING = "descending"


class Reprocess(StrEnum):
    """Which of the dates that ran before run again."""

    NONE = "none"
    FAILED = "failed"
    ALL = "all"


class Downstream(StrEnum):
    """Which workflows that depend on this one run as well."""

    NONE = "none"
    DIRECT = "direct"
    ALL = "all"  # and those that depend on these, and so on


def _when(value: Any) -> Any:
    """Return a day or a time as its text. Raises ValueError for a text that is none."""
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, str):
        read_when(value)
    return value


def read_when(text: str) -> date | datetime:
    """Return what a text means: ``2026-11-21`` a day, ``2026-11-21T06:00`` a time.

    A time without an offset has no zone. Raises ValueError.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a date; write 2026-11-21, 2026-11-21T06:00 or 2026-11-21T06:00+01:00"
        ) from None


When = Annotated[str, BeforeValidator(_when, json_schema_input_type=str), Field(max_length=50)]


class BackfillRequest(Strict):
    """What is to be run for which dates.

    Either the range ``from`` to ``to``, both included, or ``dates``. Days and times without an
    offset are in the workflow's time zone. ``version``, ``tasks`` and ``parameters`` are about
    the workflow itself, not about those downstream of it.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    project: Name = "default"
    workflow: Name
    version: StrictInt | None = Field(
        default=None, ge=1, le=2**31 - 1
    )  # None: the newest at each start
    first: When | None = Field(default=None, alias="from")
    last: When | None = Field(default=None, alias="to")
    by: By | None = None  # None: by schedule if the workflow has one that is enabled, else by day
    dates: tuple[When, ...] = Field(default=(), max_length=MAX_RUNS)
    only: Only | None = None
    order: DateOrder = DateOrder.ASCENDING
    parallel: StrictInt = Field(default=1, ge=1, le=MAX_PARALLEL)  # never more run at the same time
    tasks: tuple[Name, ...] = ()  # none: all of them
    mode: SelectionMode = SelectionMode.ONLY
    parameters: dict[ParameterName, str] = Field(default_factory=dict)
    # After how many failures nothing more starts: stop is 1, continue never.
    # None: stop if one goes after the other, else continue.
    on_failure: Literal["stop", "continue"] | Annotated[int, Field(ge=1, le=MAX_RUNS)] | None = None
    reprocess: Reprocess = Reprocess.NONE
    downstream: Downstream = Downstream.NONE
    priority: Level = Priority.LOW
    labels: Labels = Field(default_factory=dict)  # of all its runs

    @field_validator("parameters", mode="before")
    @classmethod
    def _scalars_as_text(cls, value: Any) -> Any:
        return {k: scalar_text(v) for k, v in value.items()} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.dates:
            if self.first or self.last or self.by:
                raise ValueError("dates do not go with from, to and by: give a range or a list")
        elif not (self.first and self.last):
            raise ValueError("from and to, or dates, are required")
        if self.only and self.reprocess is not Reprocess.NONE:
            raise ValueError("only and reprocess do not go together: give one of them")
        if self.mode is not SelectionMode.ONLY and not self.tasks:
            raise ValueError(f"mode {self.mode} needs the tasks to start from")
        return self

    @property
    def selection(self) -> Selection | None:
        """The chosen tasks; None: all of them."""
        return Selection(self.tasks, self.mode) if self.tasks else None

    @property
    def stop_after(self) -> int | None:
        """The number of failures after which nothing more starts; None: it always goes on."""
        match self.on_failure:
            case None:
                return 1 if self.parallel == 1 else None
            case "stop":
                return 1
            case "continue":
                return None
            case count:
                return count

    def stored(self) -> dict[str, Any]:
        """Return it as JSON values, without what is as always; ``read`` makes it of them again."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> "BackfillRequest":
        """Return what ``stored`` has kept. Raises BackfillRefused if this version cannot know."""
        try:
            return cls.model_validate(stored)
        except ValidationError as error:
            reasons = "; ".join(f"{one['loc']}: {one['msg']}" for one in error.errors())
            raise BackfillRefused(
                "",
                "another version of Shoal accepted this backfill, in terms that this one does not "
                f"know ({reasons}); upgrade it",
            ) from None


#: In what a command keeps of a request: the ids of the projects that its caller was found to be
#: allowed to operate, when it was accepted and planned for the first time.
JUDGED = "judged"


def asked(detail: Mapping[str, Any]) -> tuple[BackfillRequest, frozenset[int]]:
    """Return the request that a command keeps, and the projects of ``JUDGED``.

    Raises BackfillRefused.
    """
    request = {name: value for name, value in detail.items() if name != JUDGED}
    return BackfillRequest.read(request), frozenset(detail.get(JUDGED, ()))


class BackfillState(StrEnum):
    """State of a whole backfill."""

    RUNNING = "RUNNING"  # dates may start
    PAUSED = "PAUSED"  # no date starts; those that run may finish
    CANCELLING = "CANCELLING"  # what runs is being stopped
    CANCELLED = "CANCELLED"  # ended by request
    SUCCEEDED = "SUCCEEDED"  # every date has ended well; final
    FAILED = "FAILED"  # ended, not every date has ended well


class BackfillSignal(StrEnum):
    """What can happen to a backfill."""

    PAUSE = "PAUSE"  # request
    RESUME = "RESUME"  # request
    CANCEL = "CANCEL"  # request
    RETRY = "RETRY"  # request: what failed or was cancelled waits again
    SETTLE = "SETTLE"  # cancelled, and no run is open
    SUCCEED = "SUCCEED"  # all dates have ended well
    FAIL = "FAIL"  # all dates have ended, not all of them well


class BackfillRunState(StrEnum):
    """State of one date of a backfill."""

    WAITING = "WAITING"  # its turn has not come
    STARTED = "STARTED"  # a run was asked for, and has not ended
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"  # its run failed, was stopped or could not be started
    SKIPPED = "SKIPPED"  # the plan leaves it out; the reason says why
    CANCELLED = "CANCELLED"  # the backfill ended before its turn came, or stopped its run


class BackfillRunSignal(StrEnum):
    """What can happen to one date of a backfill."""

    START = "START"  # a run is asked for
    SUCCEED = "SUCCEED"
    FAIL = "FAIL"
    CANCEL = "CANCEL"
    RETRY = "RETRY"  # it waits for another try
    FOLLOW = "FOLLOW"  # its run was recovered or resumed, and has not ended


_B, _BS = BackfillState, BackfillSignal
BACKFILL_TRANSITIONS: Mapping[tuple[BackfillState, BackfillSignal], BackfillState] = {
    (_B.RUNNING, _BS.PAUSE): _B.PAUSED,
    (_B.RUNNING, _BS.CANCEL): _B.CANCELLING,
    (_B.RUNNING, _BS.RETRY): _B.RUNNING,
    (_B.RUNNING, _BS.SUCCEED): _B.SUCCEEDED,
    (_B.RUNNING, _BS.FAIL): _B.FAILED,
    (_B.PAUSED, _BS.RESUME): _B.RUNNING,
    (_B.PAUSED, _BS.CANCEL): _B.CANCELLING,
    (_B.PAUSED, _BS.RETRY): _B.PAUSED,
    (_B.PAUSED, _BS.SUCCEED): _B.SUCCEEDED,
    (_B.PAUSED, _BS.FAIL): _B.FAILED,
    (_B.CANCELLING, _BS.SETTLE): _B.CANCELLED,
    (_B.CANCELLED, _BS.RETRY): _B.RUNNING,
    (_B.FAILED, _BS.RETRY): _B.RUNNING,
}

_R, _RS = BackfillRunState, BackfillRunSignal
BACKFILL_RUN_TRANSITIONS: Mapping[tuple[BackfillRunState, BackfillRunSignal], BackfillRunState] = {
    (_R.WAITING, _RS.START): _R.STARTED,
    (_R.WAITING, _RS.FAIL): _R.FAILED,
    (_R.WAITING, _RS.CANCEL): _R.CANCELLED,
    (_R.STARTED, _RS.SUCCEED): _R.SUCCEEDED,
    (_R.STARTED, _RS.FAIL): _R.FAILED,
    (_R.STARTED, _RS.CANCEL): _R.CANCELLED,
    (_R.FAILED, _RS.RETRY): _R.WAITING,
    (_R.FAILED, _RS.FOLLOW): _R.STARTED,
    (_R.FAILED, _RS.SUCCEED): _R.SUCCEEDED,
    (_R.CANCELLED, _RS.RETRY): _R.WAITING,
    (_R.CANCELLED, _RS.FOLLOW): _R.STARTED,
    (_R.CANCELLED, _RS.SUCCEED): _R.SUCCEEDED,
}

ENDED_BACKFILL = frozenset({_B.CANCELLED, _B.SUCCEEDED, _B.FAILED})


def next_backfill_state(state: BackfillState, signal: BackfillSignal) -> BackfillState:
    """Return the state after ``signal``. Raises IllegalTransition if no row matches."""
    try:
        return BACKFILL_TRANSITIONS[state, signal]
    except KeyError:
        raise IllegalTransition(state, signal) from None


def next_run_state(state: BackfillRunState, signal: BackfillRunSignal) -> BackfillRunState:
    """Return the state after ``signal``. Raises IllegalTransition if no row matches."""
    try:
        return BACKFILL_RUN_TRANSITIONS[state, signal]
    except KeyError:
        raise IllegalTransition(state, signal) from None


@dataclass(frozen=True)
class Backfill:
    """A stored backfill, without its dates."""

    id: int
    workflow_id: int
    project: str
    workflow: str
    partition: int
    command_id: int
    state: BackfillState
    reason: str | None
    request: BackfillRequest
    requested_by: str
    created_at: datetime
    finished_at: datetime | None
