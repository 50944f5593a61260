"""Whether an answer is what it has to be."""

import json
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from shoal.worker.types.http.answer import HttpAnswer, Unusable
from shoal.worker.types.http.kind import AnswerChecks, statuses

GOOD = ("2xx",)
#: How long a regular expression may search a body. Some take for ever on the wrong text.
SEARCH_S = 2.0
_LONGEST_SHOWN = 200  # characters of a value


class SearchTooSlow(Exception):
    """A regular expression needs too long for this body."""


def has_status(answer: HttpAnswer, wanted: Sequence[str] | None) -> bool:
    """Return whether the answer's status is among those wanted; None: 2xx."""
    return any(answer.status in statuses(one) for one in wanted or GOOD)


def missed(
    checks: AnswerChecks, answer: HttpAnswer, default: Sequence[str] | None = None
) -> str | None:
    """Return what of ``checks`` does not hold, for people; None if all of it does.

    ``default`` are the statuses that are good if the checks name none; None: any.
    Raises SearchTooSlow, OSError.
    """
    wanted = checks.status or default
    if wanted is not None and not has_status(answer, wanted):
        return f"the status is {answer.status}, not {' or '.join(wanted)}"
    try:
        return next(_missed_in_body(checks, answer), None)
    except Unusable as error:
        return str(error)


def _missed_in_body(checks: AnswerChecks, answer: HttpAnswer) -> Iterator[str]:
    for path, wanted in checks.json_.items():
        found = answer.at(path)
        among = wanted if isinstance(wanted, list) else [wanted]
        if not any(same(found, one) for one in among):
            expected = " or ".join(_shown(one) for one in among)
            yield f"{path} is {_shown(found)}, not {expected}"
    for text in checks.contains:
        if text not in answer.text:
            yield f"the body does not contain {_shown(text)}"
    for text in checks.not_contains:
        if text in answer.text:
            yield f"the body contains {_shown(text)}"
    if checks.matches is not None and not found_in(checks.matches, answer.text):
        yield f"nothing in the body matches {_shown(checks.matches)}"


def same(found: Any, wanted: Any) -> bool:
    """Return whether a JSON value is the one that is wanted.

    A number or truth value may be wanted as text, which is what parameters are.
    """
    if isinstance(found, bool) is not isinstance(wanted, bool):
        return isinstance(wanted, str) and json.dumps(found) == wanted
    if isinstance(wanted, str) and isinstance(found, int | float):
        return json.dumps(found) == wanted
    return bool(found == wanted)


def found_in(pattern: str, text: str, limit_s: float = SEARCH_S) -> bool:
    """Return whether a regular expression matches anywhere. Main thread only.

    Raises SearchTooSlow after ``limit_s``, Unusable if it is none.
    """
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        raise Unusable("matches is not a regular expression") from None
    with _alarm(limit_s):
        return compiled.search(text) is not None


@contextmanager
def _alarm(limit_s: float) -> Iterator[None]:
    """Raise SearchTooSlow in the block after ``limit_s``: the engine looks for signals."""

    def too_slow(number: int, frame: FrameType | None) -> None:
        raise SearchTooSlow

    former = signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
