"""What Flink's exceptions say: the one that matters, and whether it would come again."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shoal.core.errors import shortened

_FRAME = re.compile(r"\s+(at |\.\.\. )")
_CAUSE = re.compile(
    r"(?:<Exception on server side:\s*)?(?:Caused by: )?([\w.$]+(?:Exception|Error))\b"
)
# The jar, its class or its program is wrong: Flink has begun nothing, and would not another time.
_PROGRAM = "org.apache.flink.client.program.Program"
_NO_JOB = ("No jobs included in application", "The application contains no execute() calls")
_MAIN_FAILED = "The main method caused an error"
_LONGEST = 500  # characters


def chain(trace: str) -> list[str]:
    """Return the exceptions of a stack trace without their frames, the cause of all others last."""
    found: list[str] = []
    for line in trace.splitlines():
        text = line.strip()
        if not text or _FRAME.match(line) or text.startswith(("at ", "... ")):
            continue
        if _CAUSE.match(text):
            found.append(text.removeprefix("Caused by: "))
        elif found and not text.startswith(("<", "End of exception")):
            found[-1] += f" {text}"  # a message of several lines
    return found


def cause(trace: str) -> str:
    """Return the exception that caused all others, in one line; the text itself if it has none."""
    found = chain(trace)
    return shortened(found[-1] if found else " ".join(trace.split()), _LONGEST)


def is_of_the_jar(trace: str) -> bool:
    """Return whether the jar itself is what is wrong, which no other attempt would change."""
    if any(text in trace for text in _NO_JOB):
        return True
    return any(one.startswith(_PROGRAM) and _MAIN_FAILED not in one for one in chain(trace))


def refusal(trace: str) -> str:
    """Return why Flink has not started a job, in one line."""
    for one in chain(trace):
        name, _, message = one.partition(": ")
        if name.startswith(_PROGRAM) and _MAIN_FAILED not in message:
            return shortened(message or name, _LONGEST)
        if any(text in one for text in _NO_JOB):
            return "the program has no job: it never calls execute()"
    return cause(trace)


def errors_of(body: Mapping[str, Any]) -> str:
    """Return what an answer with an error says: of its texts the one that has most to say."""
    errors = body.get("errors")
    texts = [str(one) for one in errors] if isinstance(errors, list) else []
    return max(reversed(texts), key=lambda one: len(chain(one)), default="")


def traces_of(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the stack traces of a job's exceptions, the newest first."""
    history = body.get("exceptionHistory")
    entries = history.get("entries") if isinstance(history, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("stacktrace"):
            yield str(entry["stacktrace"])
    if body.get("root-exception"):  # of Flink 1
        yield str(body["root-exception"])
