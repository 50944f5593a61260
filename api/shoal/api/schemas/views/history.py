"""What has happened."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from pydantic import Field

from shoal.api.schemas.common import Answer, SaidOut
from shoal.core.runs.why import reasons


def with_said(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of an event; a reason that has a code is there as ``reason_said``, too."""
    said = SaidOut.of(reasons.of_event(kind, data))
    return {**data} if said is None else {**data, "reason_said": said.model_dump()}


class HappenedOut(Answer):
    """An event as the live stream has it, a command, or a takeover of a partition."""

    at: datetime
    kind: str = Field(
        description="The kind of the event; `command`: a user made a request; "
        "`partition.takeover`: another master works on the runs of a partition."
    )
    id: int = Field(description="Of the event, the command or the takeover.")
    project: str | None
    instance_id: int | None
    task_instance_id: int | None
    by: str | None = Field(description="Who has sent the command.")
    data: dict[str, Any] = Field(
        description="Of an event what the stream has; `reason_said` is its reason for programs. "
        "Of a command `type`, `state`, `reason`, "
        "`workflow`, `task`, `handled_at`. Of a takeover `partition`, `epoch`, `owner`, "
        "`previous_owner`."
    )

    @classmethod
    def of(cls, happened: Any) -> Self:
        """Return what is shown of an event, a command or a takeover."""
        data = with_said(happened.kind, happened.data)
        return cls.model_validate({**vars(happened), "data": data})
