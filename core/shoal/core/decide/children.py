"""What a SUB_WORKFLOW or MAP task knows of its instances: the ``detail`` of its attempt.

``{"items": [...], "children": {"0": {"instance": 12, "state": "RUNNING", ...}, ...}}``: one child
for each item, a SUB_WORKFLOW has one item, null. ``state`` is a workflow state, STARTING until the
child has told one, or REFUSED. ``again`` is the request with which a child that stood still before
is to be continued. ``outputs`` and ``reason`` are what it told at its end.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from shoal.core.commands import CommandType
from shoal.core.run import Attempt
from shoal.core.states import WorkflowState

_W = WorkflowState
STARTING, REFUSED = "STARTING", "REFUSED"
_ENDED = frozenset({_W.SUCCEEDED, _W.FAILED, REFUSED})
_AT_REST = frozenset({_W.PAUSED, _W.STOPPED})
_AGAIN = {
    _W.FAILED: CommandType.RECOVER,
    _W.STOPPED: CommandType.RESUME,
    _W.PAUSED: CommandType.RESUME,
}
Child = dict[str, Any]


class Children:
    """A changeable copy of the children of one attempt."""

    def __init__(self, attempt: Attempt) -> None:
        self._detail: dict[str, Any] = deepcopy(dict(attempt.detail))
        self._children: dict[str, Child] = self._detail.setdefault("children", {})

    @property
    def detail(self) -> Mapping[str, Any]:
        """What the attempt is to keep."""
        return self._detail

    @property
    def items(self) -> list[str | None] | None:
        """The items, None before they are known."""
        found: list[str | None] | None = self._detail.get("items")
        return found

    @items.setter
    def items(self, items: list[str | None]) -> None:
        self._detail["items"] = items

    def of(self, index: int) -> Child | None:
        """Return the child of an item, None if it was not started."""
        return self._children.get(str(index))

    def set(self, index: int, **fields: Any) -> None:
        """Change or add the child of an item."""
        self._children.setdefault(str(index), {}).update(fields)

    def moving(self) -> list[int]:
        """The items whose instances work, or are about to."""
        return [
            i
            for i, child in self._all()
            if child["state"] not in _ENDED | _AT_REST and "again" not in child
        ]

    def at_rest(self) -> list[int]:
        """The items whose instances stand still but have not ended."""
        return [i for i, child in self._all() if child["state"] in _AT_REST]

    def paused(self) -> list[int]:
        """The items whose instances are paused: a request that they got meanwhile moves them on."""
        return [i for i, child in self._all() if child["state"] == _W.PAUSED]

    def not_succeeded(self) -> list[int]:
        """The items whose instances did not succeed, or were not started."""
        return [
            i
            for i in range(len(self.items or ()))
            if (child := self.of(i)) is None or child["state"] != _W.SUCCEEDED
        ]

    def all_ended(self) -> bool:
        """Whether there is nothing left to start, to continue, or to wait for."""
        items = self.items or ()
        return len(self._children) == len(items) and all(
            child["state"] in _ENDED and "again" not in child for _, child in self._all()
        )

    def prepare_again(self) -> None:
        """Mark what stood still before as to be continued; what was refused starts anew."""
        for index, child in list(self._all()):
            if child["state"] == REFUSED:
                del self._children[str(index)]
            elif child["state"] in _AGAIN:
                child["again"] = _AGAIN[child["state"]]

    def next_again(self) -> tuple[int, CommandType, int] | None:
        """Take the first child to be continued: item, request, instance. None: there is none."""
        for index, child in self._all():
            if "again" in child:
                child["state"] = STARTING
                return index, CommandType(child.pop("again")), child["instance"]
        return None

    def next_new(self) -> int | None:
        """Return the first item without a child; None: all have one."""
        started = self._children.keys()
        return next((i for i in range(len(self.items or ())) if str(i) not in started), None)

    def outputs(self) -> list[Mapping[str, str]]:
        """What each item's instance has given, in the order of the items."""
        return [(self.of(i) or {}).get("outputs") or {} for i in range(len(self.items or ()))]

    def _all(self) -> Iterator[tuple[int, Child]]:
        yield from ((int(index), child) for index, child in self._children.items())
