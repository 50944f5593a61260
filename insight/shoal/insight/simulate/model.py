"""What is simulated: workflows, slots, and what is known of durations, as one JSON document."""

import json
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)

from shoal.core.definition.model import WorkflowSpec
from shoal.core.errors import ShoalError

FORMAT = 1
HOURS_OF_A_WEEK = 168

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Slots = Annotated[int, Field(ge=0, le=1_000_000)]


class InvalidModel(ShoalError, ValueError):
    """A file that is not a model, or a model that contradicts itself."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskHistory(_Strict):
    """What earlier attempts of a task say of the next ones. Lists of seconds ascend.

    ``seconds``: how long those took that succeeded, ``failed_seconds`` those that failed; each may
    be samples or quantiles at equal steps. ``failure``: the share of attempts that fail. A task
    that looks again and again: ``looks`` how often it looked in vain before it found, ``again_s``
    the time between two looks. ``outputs``: what it passed on, each one possible set.
    """

    seconds: tuple[Seconds, ...] = ()
    failed_seconds: tuple[Seconds, ...] = ()
    failure: float = Field(default=0.0, ge=0, le=1)
    looks: tuple[Annotated[int, Field(ge=0)], ...] = ()
    again_s: tuple[Seconds, ...] = ()
    outputs: tuple[dict[str, str], ...] = ()

    @field_validator("seconds", "failed_seconds", "looks", "again_s")
    @classmethod
    def _ascending(cls, values: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(values))


class WorkflowModel(_Strict):
    """A workflow: its definition with the schedules that fire, and its history.

    ``requests``: runs an hour that people and programs ask for, by hour of the week in UTC, from
    Monday 00:00 on. ``parameters``: those of its project.
    """

    definition: WorkflowSpec
    parameters: dict[str, str] = Field(default_factory=dict)
    tasks: dict[str, TaskHistory] = Field(default_factory=dict)
    requests: dict[int, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict
    )

    @field_validator("requests")
    @classmethod
    def _hours(cls, requests: dict[int, float]) -> dict[int, float]:
        if wrong := [hour for hour in requests if not 0 <= hour < HOURS_OF_A_WEEK]:
            raise ValueError(f"{wrong[0]} is not an hour of a week; they are 0 to 167")
        return requests

    @field_serializer("definition")
    def _plain(self, definition: WorkflowSpec) -> dict[str, Any]:
        return {"project": definition.project, **definition.canonical()}

    @property
    def name(self) -> str:
        """PROJECT/NAME."""
        return f"{self.definition.project}/{self.definition.name}"


class GroupModel(_Strict):
    """A worker group. ``start_s``: from a free slot to the start of the program."""

    slots: Slots
    start_s: Seconds = 0.0


class Model(_Strict):
    """Everything that a simulation needs. ``at``: when it was taken from a cluster.

    ``concurrency``: slots of concurrency groups, ``calendars``: days without fire times; both by
    PROJECT/NAME. ``notes``: what could not be had, for people.
    """

    format: int = FORMAT
    at: AwareDatetime
    groups: dict[str, GroupModel] = Field(default_factory=dict)
    concurrency: dict[str, Slots] = Field(default_factory=dict)
    calendars: dict[str, tuple[date, ...]] = Field(default_factory=dict)
    workflows: tuple[WorkflowModel, ...] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _known_format(self) -> Self:
        if self.format != FORMAT:
            raise ValueError(f"format {self.format} is not known here; this version reads {FORMAT}")
        names = [one.name for one in self.workflows]
        if twice := {name for name in names if names.count(name) > 1} if names else set():
            raise ValueError(f"the workflow {min(twice)} is there twice")
        return self

    def workflow(self, name: str) -> WorkflowModel | None:
        """Return the workflow PROJECT/NAME; None: there is none."""
        return next((one for one in self.workflows if one.name == name), None)


def read(path: Path) -> Model:
    """Read a model from a file. Raises InvalidModel, which says where it is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidModel(f"{path}: cannot be read: {error}") from error
    try:
        return Model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise InvalidModel(
            f"{path}: {where}: {first['msg']}{more}; `shoal simulate --save-model FILE` writes a "
            "model of the present cluster"
        ) from None


def write(model: Model, path: Path) -> None:
    """Write a model to a file. Raises InvalidModel if it cannot be written."""
    document = model.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps({"format": FORMAT, **document}, ensure_ascii=False, indent=1) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidModel(f"{path}: cannot be written: {error}") from error


def hour_of_week(moment: datetime) -> int:
    """Return the hour of the week of a UTC time, 0 on Monday at 00:00."""
    return moment.weekday() * 24 + moment.hour
