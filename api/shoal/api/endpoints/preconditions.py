"""ETags, and what a change asks to be true before it is made: ``If-Match``, ``If-None-Match: *``.

A route that changes something says so in its signature, and checks within its transaction::

    async def put_calendar(…, condition: Condition) -> CalendarOut:
        async with store.unit_of_work() as uow:
            await uow.projects.hold(project)  # locks what it has until the commit
            await condition.check(lambda: _shown(uow, project, name), body)
            stored, is_new = await uow.calendars.put(…)
            await uow.commit()
        return condition.answer(CalendarOut.model_validate(stored), is_new=is_new)

Its GET answers ``tagged(response, …)``. The description of both follows from that.

What people edit in a browser they have looked at before, so a session has to say what it has seen;
a program may overwrite, as those that apply files do.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Response
from pydantic import BaseModel

from shoal.api.access.callers import Calling
from shoal.api.web.errors import FieldError, InvalidRequest, PreconditionFailed, PreconditionMissing
from shoal.core.definition.diff import Change, diff
from shoal.sql.errors import NotFound, UnreadableRow

ETAG = {
    "ETag": {
        "description": "Stands for this state; what `If-Match` takes.",
        "schema": {"type": "string"},
        "example": '"b5b1c4e0d1f24c0a8f6b3f2a9c7d5e10"',
    }
}
STATUSES = (412, 428)  # what a route with a condition may answer besides
ANY = "*"
_ONE = '(W/)?"[!#-~]*"'
_TAGS = f"^({_ONE}(, ?{_ONE})*|[*])$"
_TAG = re.compile(_ONE)
_Out = TypeVar("_Out", bound=BaseModel)


def etag_of(state: BaseModel) -> str:
    """Return the strong validator of what can be edited.

    Fields that change by themselves, which the class names in ``uncounted``, do not count.
    """
    content = state.model_dump_json(exclude=set(getattr(state, "uncounted", ())))
    return f'"{hashlib.sha256(content.encode()).hexdigest()[:32]}"'


def tagged(response: Response, state: _Out, tag: str | None = None) -> _Out:
    """Return ``state``, its ETag in the header of the answer; ``tag``: one of the caller's own."""
    response.headers["ETag"] = tag or etag_of(state)
    return state


class Preconditions:
    """What one request asks for. ``match`` None: nothing, else ETags or ``*``."""

    def __init__(
        self,
        match: frozenset[str] | None,
        *,
        must_be_new: bool,
        needs_match: bool,
        answer: Response,
    ) -> None:
        self._match, self._must_be_new = match, must_be_new
        self._needs_match, self._answer = needs_match, answer

    @property
    def asks(self) -> bool:
        """Whether anything is asked for, so that there is something to check."""
        return self._match is not None or self._must_be_new or self._needs_match

    def strictly(self) -> "Preconditions":
        """Return them for a thing that can be overwritten only by a caller who has read it."""
        return Preconditions(
            self._match, must_be_new=self._must_be_new, needs_match=True, answer=self._answer
        )

    async def check(
        self,
        show: Callable[[], Awaitable[_Out]],
        wanted: BaseModel | Mapping[str, Any] | None = None,
        *,
        tag_of: Callable[[_Out], str] = etag_of,
    ) -> None:
        """Return if the change may be made. Call it where the state is locked.

        ``show`` reads the state, and raises NotFound if there is none. ``wanted`` is what it would
        become: the answer to a caller with an old state says in what the two differ. Raises
        PreconditionFailed, PreconditionMissing.
        """
        if not self.asks:
            return
        try:
            current = await show()
        except NotFound:
            if self._match is not None:
                raise PreconditionFailed("it no longer exists") from None
            return
        except UnreadableRow:
            if self._match is not None and ANY in self._match:
                return  # there is one, and more was not asked
            raise
        tag = tag_of(current)
        if self._must_be_new:
            raise _differs("there is one already", current, tag, wanted)
        if self._match is None:
            raise PreconditionMissing(
                "send the header If-Match with the ETag of the version that you read, or * to "
                "overwrite any version",
                headers={"ETag": tag},
            )
        if not self._match & {ANY, tag}:
            text = "it has changed since: `current` is how it is now, `changes` what you would make"
            raise _differs(f"{text} of that", current, tag, wanted)

    def answer(self, state: _Out, *, is_new: bool = False, tag: str | None = None) -> _Out:
        """Return ``state``, its ETag in the header; 201 if it is new."""
        if is_new:
            self._answer.status_code = 201
        return tagged(self._answer, state, tag)


def _differs(
    text: str, current: BaseModel, tag: str, wanted: BaseModel | Mapping[str, Any] | None
) -> PreconditionFailed:
    now = current.model_dump(mode="json")
    return PreconditionFailed(text, now, _changes(now, wanted), headers={"ETag": tag})


def _changes(now: Mapping[str, Any], wanted: BaseModel | Mapping[str, Any] | None) -> list[Change]:
    """Return what the request would change, of what is shown: a secret's value never is."""
    if wanted is None:
        return []
    if isinstance(wanted, BaseModel):
        wanted = wanted.model_dump(mode="json", include=set(now))
    asked = {name: value for name, value in wanted.items() if name in now}
    return diff({name: now[name] for name in asked}, asked)


async def _preconditions(
    caller: Calling,
    response: Response,
    if_match: Annotated[
        str | None,
        Header(
            max_length=2_000,
            json_schema_extra={"pattern": _TAGS},
            description="Change only this state: its ETag, or `*` for any. 412 says how it is now.",
            examples=["*"],
        ),
    ] = None,
    if_none_match: Annotated[
        str | None, Header(pattern=r"^\*$", description="`*`: only make what is not there yet.")
    ] = None,
) -> Preconditions:
    return Preconditions(
        None if if_match is None else _parsed(if_match),
        must_be_new=if_none_match is not None,
        needs_match=caller.credential.is_session,
        answer=response,
    )


def _parsed(text: str) -> frozenset[str]:
    if re.fullmatch(_TAGS, text) is None:
        raise InvalidRequest([FieldError("If-Match", 'must be * or ETags, such as "b5b1c4e0"')])
    return frozenset(found.group() for found in _TAG.finditer(text)) or frozenset({ANY})


CONDITION = Depends(_preconditions)
Condition = Annotated[Preconditions, CONDITION]


def is_conditional(handler: Callable[..., Any]) -> bool:
    """Say whether a handler checks a condition."""
    marks = (
        getattr(annotation, "__metadata__", ())
        for annotation in getattr(handler, "__annotations__", {}).values()
    )
    return any(CONDITION in found for found in marks)
