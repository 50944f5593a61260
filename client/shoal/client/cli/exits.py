"""How ``shoal`` ends, for scripts. This is the only place that says so."""

from enum import IntEnum

from shoal.core.errors import ShoalError


class ExitStatus(IntEnum):
    """Exit statuses."""

    OK = 0
    FAILED = 1  # the run or the command failed, or was refused
    USAGE = 2  # wrong arguments, or an invalid definition
    NOT_FOUND = 3
    UNREACHABLE = 4  # no cluster, no answer, or a token or password it does not accept
    INTERRUPTED = 130  # Ctrl-C


EPILOG = (
    "Exit status: 0 ok; 1 the run or command failed or was refused; 2 wrong usage or invalid "
    "definition; 3 not found; 4 cluster unreachable or not signed in; 130 interrupted."
)

_BY_HTTP_STATUS = {
    400: ExitStatus.USAGE,
    401: ExitStatus.UNREACHABLE,
    404: ExitStatus.NOT_FOUND,
    413: ExitStatus.USAGE,
    422: ExitStatus.USAGE,
    502: ExitStatus.UNREACHABLE,
    503: ExitStatus.UNREACHABLE,
    504: ExitStatus.UNREACHABLE,
}


def exit_status(error: ShoalError) -> ExitStatus:
    """Return the status that an error ends the program with."""
    from shoal.client.errors import (
        ApiProblem,
        ApiUnreachable,
        NoCluster,
        NotADay,
        NotEncrypted,
        NotFound,
    )

    match error:
        case ApiProblem():
            return _BY_HTTP_STATUS.get(error.status, ExitStatus.FAILED)
        case ApiUnreachable() | NoCluster():
            return ExitStatus.UNREACHABLE
        case NotFound():
            return ExitStatus.NOT_FOUND
        case NotADay() | NotEncrypted():
            return ExitStatus.USAGE
    from shoal.core.checks.workflow import InvalidDefinition

    return ExitStatus.USAGE if isinstance(error, InvalidDefinition) else ExitStatus.FAILED
