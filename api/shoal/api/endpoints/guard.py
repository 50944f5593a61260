"""``needs``: what a route asks of its caller, said beside its path and judged before it begins.

What a request names by a key of its own is judged here, for every route alike: the parameters of
its path by their names, and what its body names (``NamesThings``). Handlers get the values after
that. What lists show, routes take from ``Caller.visible``.

A route that changes something names its action, too: its entry in the audit is committed together
with the change, since the handler gets a store that does so.
"""

import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Set
from typing import Any, Protocol, TypeVar, runtime_checkable

from fastapi.params import Path, Query
from pydantic import BaseModel

from shoal.api.access.audit import Record, Recording
from shoal.api.access.callers import Caller, Calling
from shoal.api.web.errors import Forbidden
from shoal.api.web.store import Store
from shoal.core.access.authorization import Thing
from shoal.core.access.permissions import OF_PROJECT, Permission
from shoal.sql.errors import NotFound

#: The action of a route that changes nothing, although its method may.
NOTHING = "nothing"
#: Parameters of paths that name a thing by a key of its own, not by a name within its project.
THINGS: Mapping[str, Thing] = {
    "project": Thing.PROJECT,
    "instance_id": Thing.INSTANCE,
    "other_instance_id": Thing.INSTANCE,
    "task_instance_id": Thing.TASK_INSTANCE,
    "command_id": Thing.COMMAND,
    "schedule_id": Thing.SCHEDULE,
    "backfill_id": Thing.BACKFILL,
    "past_instance_id": Thing.PAST_RUN,
}
# The parameters that the guard adds to each handler.
_CALLER, _RECORD = "guarded_caller", "guarded_record"
_MARK, _IN_PATH, _ACTION = "shoal_permission", "shoal_things", "shoal_action"
_LARGE = "shoal_large"
_ACTION_PATTERN = re.compile(r"[a-z][a-z-]*\.[a-z][a-z-]*")  # noun.verb

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])


@runtime_checkable
class NamesThings(Protocol):
    """A body that names things by keys of their own."""

    def things(self) -> Iterable[tuple[Thing, int | str]]:
        """Yield each thing that the request is about."""
        ...


@runtime_checkable
class ReadsProjects(Protocol):
    """A body that names projects which the request takes from, and does not change."""

    def reads(self) -> Iterable[str]:
        """Yield the name of each such project."""
        ...


def needs(
    permission: Permission,
    *,
    audit: str | None = None,
    project_may_be_missing: bool = False,
    large: bool = False,
) -> Callable[[Handler], Handler]:
    """Return a decorator for the handler of a route whose callers need ``permission``.

    The project that the path names is there when the handler begins, unless the handler itself
    looks: none is made on the way to something else.

    ``audit``: the action that the audit calls it by, as noun.verb; ``NOTHING`` for a POST that
    changes nothing. A GET with an action is noted, too, but many of a minute are counted.
    ``large``: it may take seconds of processor time, so it waits for a turn (``web.turns``).
    """
    if audit not in (None, NOTHING) and not _ACTION_PATTERN.fullmatch(audit or ""):
        raise TypeError(f"{audit!r} is not an action: noun.verb")

    def guard(handler: Handler) -> Handler:
        signature = inspect.signature(handler)
        marks = {
            name: getattr(one.annotation, "__metadata__", ())
            for name, one in signature.parameters.items()
        }
        # Parameters of the query filter lists, and name nothing that is judged here.
        path_names = {name: None for name in marks if any(isinstance(m, Path) for m in marks[name])}
        in_query = {name for name in marks if any(isinstance(m, Query) for m in marks[name])}
        in_path = {name: THINGS[name] for name in path_names if name in THINGS}

        @functools.wraps(handler)
        async def guarded(**values: Any) -> Any:
            caller: Caller = values.pop(_CALLER)
            record: Record = values.pop(_RECORD)
            record.break_glass()
            named = {  # filters in the query are not bodies
                name: value
                for name, value in values.items()
                if not (name in in_query and isinstance(value, BaseModel))
            }
            await record.about(audit or handler.__name__, named, path_names.keys())
            try:
                caller.require_own_password(permission)  # lists name nothing that is judged below
                if permission not in OF_PROJECT:
                    caller.require_of_platform(permission)
                for thing, key in _things(values, in_path):
                    record.thing = record.thing or (thing, key)
                    await caller.require(
                        permission if permission in OF_PROJECT else Permission.PROJECT_READ,
                        thing,
                        key,
                    )
                for name in _read(values):
                    await caller.require(Permission.PROJECT_READ, Thing.PROJECT, name)
                if "project" in in_path and not project_may_be_missing:
                    await caller.require_there(Thing.PROJECT, values["project"])
            except (Forbidden, NotFound):
                record.refused(permission)
                raise
            if audit not in (None, NOTHING):
                values = {
                    name: value.recording(record) if isinstance(value, Store) else value
                    for name, value in values.items()
                }
            try:
                answer = await handler(**values)
            except Forbidden:
                record.refused(permission)
                raise
            if audit not in (None, NOTHING):
                record.answered()
            return answer

        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind)
            for name, kind in ((_CALLER, Calling), (_RECORD, Recording))
        ]
        parameters = [*signature.parameters.values(), *added]
        setattr(guarded, "__signature__", signature.replace(parameters=parameters))  # noqa: B010
        setattr(guarded, _MARK, permission)
        setattr(guarded, _ACTION, audit)
        setattr(guarded, _LARGE, large)
        setattr(guarded, _IN_PATH, in_path.keys())
        return guarded  # type: ignore[return-value]

    return guard


def permission_of(handler: Callable[..., Any]) -> Permission | None:
    """Return what the handler of a route needs; None: it was not said."""
    found = getattr(handler, _MARK, None)
    return found if isinstance(found, Permission) else None


def action_of(handler: Callable[..., Any]) -> str | None:
    """Return what the audit calls what a route does; None: it was not said."""
    found: str | None = getattr(handler, _ACTION, None)
    return found


def is_large(handler: Callable[..., Any]) -> bool:
    """Say whether requests to a route's handler wait for a turn."""
    return bool(getattr(handler, _LARGE, False))


def judged_of(handler: Callable[..., Any]) -> Set[str]:
    """Return the parameters of the path that the guard of a route's handler judges."""
    found: Set[str] = getattr(handler, _IN_PATH, frozenset())
    return found


# To look at a protocol's members takes longer than all else here, so only at bodies.
def _things(
    values: Mapping[str, Any], in_path: Mapping[str, Thing]
) -> Iterator[tuple[Thing, int | str]]:
    for name, value in values.items():
        if name in in_path:
            yield in_path[name], value
        elif isinstance(value, BaseModel) and isinstance(value, NamesThings):
            yield from value.things()


def _read(values: Mapping[str, Any]) -> Iterator[str]:
    for value in values.values():
        if isinstance(value, BaseModel) and isinstance(value, ReadsProjects):
            yield from value.reads()
