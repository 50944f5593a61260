"""Reasons: the sentences that are stored with states, and the codes that they are read back to.

What masters decide is explained in English, in the rows of runs and attempts. Each of these
sentences stands here once: ``say`` makes it, and ``of_instance`` and ``of_attempt`` read it again,
as a code with arguments. Nothing beside the sentence is stored, so rows of earlier versions have
codes as well, and masters and APIs of different versions understand each other.

A sentence is only looked for in the states that it explains. What programs, task types and
workers of earlier versions say stays text, without a code.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from shoal.core.runs.records import EventKind
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.core.runs.why.codes import Argument, Code, Said

_T, _W = TaskState, WorkflowState

#: Behind the reason of a loss: what must not be done twice is left to people.
NOT_AGAIN = "; not run again by itself: it may have taken effect"
_STOPPED = "stopped: "  # before the cause of a stop without a request


class _Sentence(NamedTuple):
    """``{name}``: an argument. ``[…]``: left out if its argument is None. ``(s)``: of a number."""

    code: Code
    text: str


_SKIPPED = (
    _Sentence(Code.REASON_DISABLED, "disabled"),
    _Sentence(Code.REASON_NOT_SELECTED, "not selected for this run"),
    _Sentence(Code.REASON_NO_BRANCH, "no branch that leads here was taken"),
    _Sentence(Code.REASON_OTHER_BRANCH, "{task} chose another branch"),
    _Sentence(Code.REASON_UPSTREAM_FAILED, "upstream task {task} failed"),
    _Sentence(Code.REASON_UPSTREAM_KILLED, "upstream task {task} was killed"),
    _Sentence(Code.REASON_UPSTREAM_LOST, "upstream task {task} was lost"),
    _Sentence(Code.REASON_UPSTREAM_SKIPPED, "upstream task {task} was skipped"),
    _Sentence(Code.REASON_NONE_SUCCEEDED, "no upstream task succeeded"),
    _Sentence(Code.REASON_NONE_FAILED, "no upstream task failed"),
    _Sentence(Code.REASON_NOT_STARTED, "not started: another task failed"),
    _Sentence(Code.REASON_NOT_STARTED, "not started: {task} failed"),
    _Sentence(Code.REASON_NO_RUN, "no run was found"),
)
_ITEM = "[task {upstream} of ]{project}/{workflow}"
_MORE = "[; and {more} more]"
_DEPENDENT = (
    _Sentence(
        Code.REASON_DEPENDENCY_RUN,
        _ITEM + " for {from} ({date}): instance {instance} is {state}" + _MORE,
    ),
    _Sentence(
        Code.REASON_DEPENDENCY_TASK,
        _ITEM + " for {from} ({date}): it is {state} in instance {instance}" + _MORE,
    ),
    _Sentence(Code.REASON_DEPENDENCY_MISSING, _ITEM + ": no run for {from} ({date})" + _MORE),
    _Sentence(
        Code.REASON_DEPENDENCY_NO_WORKFLOW,
        _ITEM + ": the project {project} has no such workflow" + _MORE,
    ),
)
_FAILED = (
    _Sentence(Code.REASON_TIMED_OUT, "timed out after {after}[; the last answer: {answer}]"),
    _Sentence(Code.REASON_CHILD, "instance {instance} {state}: {why}"),
    _Sentence(Code.REASON_CHILD, "the sub-workflow {state}: {why}"),
    _Sentence(Code.REASON_CHILD_REFUSED, "instance {instance} could not be started: {why}"),
    _Sentence(Code.REASON_CHILD_REFUSED, "the sub-workflow could not be started: {why}"),
    _Sentence(Code.REASON_ITEMS, "{failed} of {items} items did not succeed; first: {why}"),
    # Of workers, about programs.
    _Sentence(Code.REASON_EXIT_CODE, "exit code {exit_code}[: {output}]"),
    _Sentence(Code.REASON_SIGNAL, "ended by signal {signal}"),
)
_KILLED = (
    _Sentence(Code.REASON_KILLED_UNSTARTED, "killed before it started"),
    _Sentence(Code.REASON_KILLED_BY_REQUEST_UNSTARTED, "killed by request before it started"),
    _Sentence(Code.REASON_KILLED_BETWEEN_LOOKS, "killed by request between two looks"),
    _Sentence(Code.REASON_KILLED_FOR, "killed: {task} failed"),
    _Sentence(
        Code.REASON_CHILD_QUARANTINED,
        "ended without instance {instance}, which is quarantined" + _MORE,
    ),
    _Sentence(Code.REASON_STOPPED_UNSTARTED, "stopped before it started"),
    _Sentence(Code.REASON_STOPPED_BETWEEN_LOOKS, "stopped between two looks"),
    _Sentence(Code.REASON_STOPPED, "stopped by request"),
)
_LOST = (
    _Sentence(Code.REASON_WORKER_GONE, "worker {worker} went away"),
    _Sentence(Code.REASON_CLAIM_GONE, "worker {worker} no longer has it"),
    _Sentence(Code.REASON_WORKER_GONE, "its worker was lost"),
)
_SUCCEEDED = (_Sentence(Code.REASON_FORCED, "taken for a success by {by}[: {why}]"),)
# Behind "stopped: ", and alone in the request to stop.
_CAUSES = (
    _Sentence(Code.REASON_RAN_LONGER, "ran longer than {after}"),
    _Sentence(Code.REASON_SUPERSEDED, "superseded by instance {instance}"),
    _Sentence(Code.REASON_REPLACED, "replaced by instance {instance}"),
    _Sentence(Code.REASON_BACKFILL_CANCELLED, "backfill {backfill} was cancelled"),
)
_ENDED = (
    _Sentence(Code.REASON_TASKS_FAILED, "{tasks} task(s) failed"),
    _Sentence(Code.REASON_FAILURES_IGNORED, "{tasks} task(s) failed, ignored as the workflow says"),
)
_STOP = (_Sentence(Code.REASON_STOPPED, "stopped by request"),)

_OF_ATTEMPT: Mapping[TaskState, tuple[_Sentence, ...]] = {
    _T.SKIPPED: _SKIPPED + _DEPENDENT,
    _T.FAILED: _FAILED + _DEPENDENT,
    _T.KILLED: _KILLED,
    _T.LOST: _LOST,
    _T.SUCCEEDED: _SUCCEEDED,
    _T.RUNNING: _DEPENDENT,
}
_OF_INSTANCE: Mapping[WorkflowState, tuple[_Sentence, ...]] = {
    _W.FAILED: _ENDED[:1],
    _W.SUCCEEDED: _ENDED[1:],
    _W.STOPPING: _STOP,
    _W.STOPPED: _STOP,
}
_IS_STOPPED = frozenset({_W.STOPPING, _W.STOPPED})
SENTENCES = tuple(
    dict.fromkeys(
        (*_SKIPPED, *_DEPENDENT, *_FAILED, *_KILLED, *_LOST, *_SUCCEEDED, *_CAUSES, *_ENDED, *_STOP)
    )
)

_NUMBERS = frozenset(
    {"instance", "backfill", "tasks", "failed", "items", "more", "exit_code", "signal"}
)
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_PATTERNS = {
    **dict.fromkeys(_NUMBERS, r"-?\d{1,18}"),
    **dict.fromkeys(("task", "upstream", "project", "workflow", "date"), _NAME),
    "state": r"[A-Z_]+",
    "worker": r"\S+",
    "after": r"[0-9a-z. ]+?",
    "from": r".+?",
    "by": r".+?",
}
_ANYTHING = r".+"
_PART = re.compile(r"\{(\w+)\}|\[([^][]*)\]|(\(s\))|([^{\[(]+|\()")


def say(code: Code, **arguments: Argument) -> str:
    """Return the sentence of a code; ``from`` is given as ``from_``. What is None is left out.

    Raises ValueError if there is none with these arguments.
    """
    return _said(code, tuple((n.rstrip("_"), v) for n, v in arguments.items() if v is not None))


@lru_cache(maxsize=1_024)  # one failure may skip thousands of tasks, all for the same reason
def _said(code: Code, arguments: tuple[tuple[str, Argument], ...]) -> str:
    given = dict(arguments)
    for one in SENTENCES:
        if one.code is code and _fits(_template(one.text), given):
            return _filled(one.text, given)
    raise ValueError(f"no sentence of {code} has the arguments {', '.join(given) or 'none'}")


def and_more(reason: str, more: int) -> str:
    """Return a reason that ``more`` others stand behind."""
    return f"{reason}; and {more} more" if more else reason


def stopped(cause: str | None) -> str | None:
    """Return the reason of an instance that is stopped for a cause; None: by a request."""
    return None if cause is None else _STOPPED + cause


@lru_cache(maxsize=8_192)
def of_attempt(state: TaskState, reason: str | None) -> Said | None:
    """Return what the reason of an attempt says; None: there is none, or it is text alone."""
    if not reason:
        return None
    if state is _T.LOST:
        is_final = reason.endswith(NOT_AGAIN)
        said = _read(_LOST, reason.removesuffix(NOT_AGAIN))
        if said is None:
            return None
        return Said(said.code, reason, {"worker": None, **said.arguments, "is_final": is_final + 0})
    return _read(_OF_ATTEMPT.get(state, ()), reason)


@lru_cache(maxsize=8_192)
def of_instance(state: WorkflowState, reason: str | None) -> Said | None:
    """Return what the reason of an instance says; None: there is none, or it is text alone."""
    if not reason:
        return None
    if state in _IS_STOPPED and reason.startswith(_STOPPED):
        said = _read(_CAUSES, reason.removeprefix(_STOPPED))
        return None if said is None else Said(said.code, reason, said.arguments)
    return _read(_OF_INSTANCE.get(state, ()), reason)


def of_event(kind: str, data: Mapping[str, Any]) -> Said | None:
    """Return what the reason in an event says; None: it has none, or it is text alone."""
    state, reason = data.get("state"), data.get("reason")
    if not isinstance(state, str) or not isinstance(reason, str):
        return None
    if kind == EventKind.INSTANCE_STATE and state in _W.__members__:
        return of_instance(_W(state), reason)
    if kind == EventKind.TASK_STATE and state in _T.__members__:
        return of_attempt(_T(state), reason)
    return None


def _read(sentences: Iterable[_Sentence], text: str) -> Said | None:
    for one in sentences:
        template = _template(one.text)
        if (found := template.pattern.fullmatch(text)) is not None:
            values = found.groupdict()
            arguments = {name: _value(name, values.get(name)) for name in arguments_of(one.code)}
            return Said(one.code, text, arguments)
    return None


def _value(name: str, text: str | None) -> Argument:
    return int(text) if text is not None and name in _NUMBERS else text


@dataclass(frozen=True)
class _Template:
    """A sentence ready to be read. ``needed``: arguments that cannot be left out."""

    pattern: re.Pattern[str]
    needed: frozenset[str]
    names: tuple[str, ...]


def _fits(template: _Template, given: Iterable[str]) -> bool:
    return template.needed <= set(given) <= set(template.names)


@cache
def arguments_of(code: Code) -> tuple[str, ...]:
    """Return the names of a code's arguments, of all its sentences."""
    names = [n for one in SENTENCES if one.code is code for n in _template(one.text).names]
    return tuple(dict.fromkeys(names))


@cache
def _template(text: str) -> _Template:
    names: list[str] = []
    needed: set[str] = set()
    pattern = ""
    for name, optional, plural, plain in _PART.findall(text):
        if name:
            pattern += _group(name, names)
            needed.add(name)
        elif optional:
            inner = "".join(
                _group(one, names) if one else re.escape(rest)
                for one, _, _, rest in _PART.findall(optional)
            )
            pattern += f"(?:{inner})?"
        else:
            pattern += "s?" if plural else re.escape(plain)
    return _Template(re.compile(pattern, re.DOTALL), frozenset(needed), tuple(names))


def _group(name: str, names: list[str]) -> str:
    """Return what an argument is read by; where it comes again, it is the same again."""
    if name in names:
        return f"(?P={name})"
    names.append(name)
    return f"(?P<{name}>{_PATTERNS.get(name, _ANYTHING)})"


def _filled(text: str, given: Mapping[str, Argument]) -> str:
    found = ""
    for name, optional, plural, plain in _PART.findall(text):
        if name:
            found += str(given[name])
        elif optional:
            inner = [one for one, _, _, _ in _PART.findall(optional) if one]
            found += _filled(optional, given) if all(one in given for one in inner) else ""
        elif plural:
            found += "" if given.get("tasks") == 1 else "s"
        else:
            found += plain
    return found
