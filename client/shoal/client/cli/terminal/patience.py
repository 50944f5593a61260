"""Reading while the API, or its database, may be away for a moment."""

import time
from collections.abc import Callable
from typing import TypeVar

from shoal.client.errors import TRANSIENT, ApiProblem, ApiUnreachable

T = TypeVar("T")

PATIENCE_S = 120.0  # an API that is started again comes back within this
_PAUSE_S = 1.0


def patiently(read: Callable[[], T]) -> T:
    """Return what ``read`` returns, repeated while the API or its database is away.

    Raises what ``read`` raises, if that lasts or a repetition does not help.
    """
    began = time.monotonic()
    while True:
        try:
            return read()
        except (ApiUnreachable, ApiProblem) as error:
            lasting = isinstance(error, ApiProblem) and error.status not in TRANSIENT
            if lasting or time.monotonic() - began > PATIENCE_S:
                raise
            time.sleep(_PAUSE_S)
