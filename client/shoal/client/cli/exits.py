"""How ``shoal`` ends, for scripts. This is the only place that says so."""

from enum import IntEnum

from shoal.core.errors import ShoalError


class Exit(IntEnum):
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
    400: Exit.USAGE,
    401: Exit.UNREACHABLE,
    404: Exit.NOT_FOUND,
    413: Exit.USAGE,
    422: Exit.USAGE,
    502: Exit.UNREACHABLE,
    503: Exit.UNREACHABLE,
    504: Exit.UNREACHABLE,
}


def exit_status(error: ShoalError) -> Exit:
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
            return _BY_HTTP_STATUS.get(error.status, Exit.FAILED)
        case ApiUnreachable() | NoCluster():
            return Exit.UNREACHABLE
        case NotFound():
            return Exit.NOT_FOUND
        case NotADay() | NotEncrypted():
            return Exit.USAGE
    from shoal.core.checks.workflow import InvalidDefinition

    return Exit.USAGE if isinstance(error, InvalidDefinition) else Exit.FAILED
