"""What a failure means for the attempt: is it tried again, and what do people read?"""

import re

from shoal.core.errors import shortened
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.sql.session import ErrorVerdict
from shoal.worker.types.sql.sql import SqlParams

LONGEST_MESSAGE = 700  # characters of what a database says
NOT_AGAIN = "the task is not tried again; write `idempotent: true` if to run it twice does no harm"

_OF_SYNTAX = re.compile(
    "syntax error|SQL syntax|no parameter|type of parameter|parameters prohibited"
)
_BOUND = "parameters are values: they cannot stand for names, types or parts of definitions"


def failed(
    error: Exception, verdict: ErrorVerdict, *, where: str, bound: str, kept: int, params: SqlParams
) -> WorkFailed:
    """Return the failure of a task whose session has raised ``error``.

    ``where`` is the statement, ``bound`` its parameters. ``kept`` statements are committed that
    would be run again.
    """
    text = shortened(str(error) or type(error).__name__, LONGEST_MESSAGE)
    text = f"{where}: {text}" if where else text
    if verdict is ErrorVerdict.PERMANENT:
        is_syntax = bound and _OF_SYNTAX.search(text)
        return WorkFailed(f"{text}; {_BOUND}" if is_syntax else text, permanent=True)
    if params.idempotent:
        return WorkFailed(text)
    if verdict is ErrorVerdict.AMBIGUOUS:
        return WorkFailed(f"{text}; {NOT_AGAIN}", permanent=True)
    if kept:
        committed = "1 statement is" if kept == 1 else f"{kept} statements are"
        return WorkFailed(f"{text}; {committed} committed already: {NOT_AGAIN}", permanent=True)
    return WorkFailed(text)
