"""What a command of people asks of a run, as the event that ``decide`` judges."""

from collections.abc import Mapping
from datetime import datetime

from shoal.core.runs.commands import CommandType, NewCommand
from shoal.core.runs.events import (
    ForceRequested,
    KillRequested,
    PauseRequested,
    RecoverRequested,
    Request,
    RerunRequested,
    ResumeRequested,
    StopRequested,
)

OF_WHOLE: Mapping[CommandType, type[PauseRequested | ResumeRequested | RecoverRequested]] = {
    CommandType.PAUSE: PauseRequested,
    CommandType.RESUME: ResumeRequested,
    CommandType.RECOVER: RecoverRequested,
}


def request_of(command: NewCommand, at: datetime) -> Request:
    """Return the event of a command. Raises KeyError for one that is not a request about a run."""
    match command.type:
        case CommandType.STOP:
            return StopRequested(at, command.detail.get("reason"), command.parent)
        case CommandType.RERUN_TASKS:
            assert command.selection is not None, "checked when it was accepted"
            return RerunRequested(command.selection, at)
        case CommandType.KILL_TASK:
            assert command.task is not None, "checked when it was accepted"
            return KillRequested(command.task, at)
        case CommandType.FORCE_SUCCESS:
            assert command.task is not None, "checked when it was accepted"
            reason = command.detail.get("reason")
            return ForceRequested(command.task, at, command.requested_by, reason)
        case _:
            return OF_WHOLE[command.type](at, command.parent)
