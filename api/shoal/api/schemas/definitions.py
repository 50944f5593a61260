"""Projects, workflows and their versions."""

from datetime import datetime
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from shoal.api.schemas.common import TIME, Strict, example
from shoal.core.definition.diff import Op
from shoal.core.runs.states import WorkflowState

DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


_PROJECT = {"name": "flights", "description": "Departures", "workflows": 3, "created_at": TIME}


class ProjectOut(BaseModel):
    """A name space of workflows."""

    model_config = example(_PROJECT)
    uncounted: ClassVar[frozenset[str]] = frozenset({"workflows"})

    name: str
    description: str
    workflows: int = Field(description="How many it holds.")
    created_at: datetime


class ProjectIn(Strict):
    """What can be changed of a project."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"description": "Departures"}]}
    )

    description: str = Field(default="", max_length=2000)


_WORKFLOW = {
    "project": "flights",
    "name": "daily",
    "description": "A day of departures",
    "owner": "ada@example.org",
    "labels": {"team": "flights"},
    "version": 4,
    "digest": DIGEST,
    "tasks": 5,
    "created_at": TIME,
    "updated_at": TIME,
    "archived_at": None,
}
DEFINITION: dict[str, Any] = {
    "name": "daily",
    "owner": "ada@example.org",
    "parameters": {"day": {"default": "2013-01-15", "type": "date"}},
    "deadline": "08:00",
    "schedules": [{"cron": "0 0 6 * * ?"}],
    "tasks": [
        {"name": "fetch", "type": "SHELL", "params": {"script": 'echo "day $day"'}},
        {
            "name": "report",
            "type": "PYTHON",
            "params": {"script": "print('ready')"},
            "depends_on": ["fetch"],
            "retries": 2,
            "retry_delay": "30s",
        },
    ],
}


class _Workflow(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    project: str
    name: str
    description: str
    owner: str = Field(description="Who is to be asked; empty: nobody.")
    labels: dict[str, str]
    version: int = Field(description="Number of the newest version.")
    digest: str = Field(description="SHA-256 of the newest definition.")
    tasks: int = Field(description="How many tasks the newest version has.")
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = Field(description="Since when nothing starts; null: it is used.")


_LAST_RUN = {
    "id": 17,
    "version": 4,
    "state": "SUCCEEDED",
    "logical_time": TIME,
    "started_at": TIME,
    "finished_at": TIME,
}


class LastRunOut(BaseModel):
    """A run as lists of workflows show it."""

    model_config = example(_LAST_RUN)

    id: int
    version: int
    state: WorkflowState
    logical_time: datetime
    started_at: datetime | None
    finished_at: datetime | None


class WorkflowOut(_Workflow):
    """A workflow and its newest version; in lists with what it did last and does next."""

    model_config = example({**_WORKFLOW, "next_fire_at": TIME, "last_runs": [_LAST_RUN]})

    next_fire_at: datetime | None = Field(
        default=None, description="In lists; null there: no schedule of it fires."
    )
    last_runs: list[LastRunOut] | None = Field(
        default=None,
        description="In lists: as many as `runs` says, the latest logical time first.",
    )


class WorkflowDetail(_Workflow):
    """A workflow with its newest definition."""

    model_config = example({**_WORKFLOW, "definition": DEFINITION})

    definition: dict[str, Any] = Field(description="The definition without default values.")


_VERSION = {"version": 4, "digest": DIGEST, "created_at": TIME, "published_by": "ada"}


class VersionOut(BaseModel):
    """One line of a workflow's history."""

    model_config = example(_VERSION)

    version: int
    digest: str
    created_at: datetime
    published_by: str | None = Field(description="Null: it was not noted yet.")


class VersionDetail(VersionOut):
    """One published version with its definition; it never changes."""

    model_config = example(
        {
            "project": "flights",
            "name": "daily",
            **_VERSION,
            "source": None,
            "definition": DEFINITION,
        }
    )

    project: str
    name: str
    source: str | None = Field(description="The YAML that it was published from, if it was.")
    definition: dict[str, Any] = Field(description="The definition without default values.")


class ChangeOut(BaseModel):
    """One value that differs between two versions."""

    model_config = ConfigDict(from_attributes=True)

    op: Op
    path: str = Field(examples=["tasks[report].retries"])
    before: Any = None
    after: Any = None


class PublishOut(BaseModel):
    """What publishing did, or with `dry_run` would do."""

    model_config = example(
        {
            "project": "flights",
            "name": "daily",
            "version": 4,
            "created": True,
            "dry_run": False,
            "digest": DIGEST,
            "diff": [
                {"op": "changed", "path": "tasks[report].retries", "before": 1, "after": 2},
            ],
        }
    )

    project: str
    name: str
    version: int = Field(description="The newest version afterwards.")
    created: bool = Field(description="Whether that version is new; false: nothing changed.")
    dry_run: bool = Field(description="Whether nothing was stored in any case.")
    digest: str
    diff: list[ChangeOut] = Field(description="Changes against the version before.")
