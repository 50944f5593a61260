"""What a SUB_WORKFLOW or MAP task knows of its instances: the ``detail`` of its attempt.

``{"items": [...], "children": {"0": {"instance": 12, "state": "RUNNING", ...}, ...}}``: one child
for each item, a SUB_WORKFLOW has one item, null. ``state`` is a workflow state, STARTING until the
child has told one, or REFUSED. ``outputs`` and ``reason`` are what it told last. ``asks`` counts
the requests that it was sent; ``asked`` is the latest one while it has not answered, and until then
it counts as moving. With ``again`` it is to be continued as soon as it stands still.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.core.runs.commands import CommandType
from shoal.core.runs.events import ChildChanged
from shoal.core.runs.run import Attempt
from shoal.core.runs.states import WorkflowState

_W = WorkflowState
STARTING, REFUSED = "STARTING", "REFUSED"
_ENDED = frozenset({_W.SUCCEEDED, _W.FAILED, REFUSED})
_AT_REST = frozenset({_W.PAUSED, _W.STOPPED})
_STANDS = _ENDED | _AT_REST
_AGAIN: Mapping[str, CommandType] = {
    _W.FAILED: CommandType.RECOVER,
    _W.STOPPED: CommandType.RESUME,
    _W.PAUSED: CommandType.RESUME,
}
_GO_ON = frozenset(_AGAIN.values())
# What a child is on its way to, once it was asked.
_ASKED = {CommandType.PAUSE: _W.PAUSING, CommandType.STOP: _W.STOPPING}
Child = dict[str, Any]


class Children:
    """A changeable copy of the children of one attempt."""

    def __init__(self, attempt: Attempt) -> None:
        # A thousand of them tell several things each: no deeper a copy than what is changed.
        stored: Mapping[str, Child] = attempt.detail.get("children", {})
        self._children: dict[str, Child] = {i: dict(child) for i, child in stored.items()}
        self._detail: dict[str, Any] = {**attempt.detail, "children": self._children}

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

    def add(self, index: int) -> None:
        """Note that the child of an item is being started."""
        self._children[str(index)] = {"state": STARTING}

    def ask(self, index: int, request: CommandType) -> tuple[int, int | None]:
        """Note that a child is sent a request; return its number and the child's instance."""
        child = self._children[str(index)]
        child.pop("again", None)
        child["asks"] = child.get("asks", 0) + 1
        child["asked"] = request
        child["state"] = _ASKED.get(request, STARTING)
        return child["asks"], child.get("instance")

    def hear(self, index: int, told: ChildChanged) -> bool:
        """Note what a child tells; False: it will have to answer a later request."""
        child = self._children[str(index)]
        if told.instance_id is not None:
            child["instance"] = told.instance_id
        if told.ask is not None and told.ask < child.get("asks", 0):
            return False
        state = REFUSED if told.state is None else told.state
        child.update(state=state, reason=told.reason, outputs=dict(told.outputs))
        asked = child.pop("asked", None)
        if state not in _AGAIN.keys() | {_W.PAUSING, _W.STOPPING}:
            child.pop("again", None)
        elif told.refused and asked in _GO_ON and asked != _AGAIN.get(state):
            child["again"] = True  # it was not where we thought
        return True

    def state(self, index: int) -> str | None:
        """Return how the child of an item stands, None if it was not started."""
        child = self.of(index)
        return None if child is None else str(child["state"])

    def moving(self) -> list[int]:
        """The items whose instances work, or are about to, or have not answered."""
        return [i for i, child in self._all() if child["state"] not in _STANDS]

    def working(self) -> list[int]:
        """As ``moving``, without those that wait for other runs of their workflow."""
        return [i for i in self.moving() if self.state(i) != _W.QUEUED]

    def at_rest(self) -> list[int]:
        """The items whose instances stand still but have not ended."""
        return [i for i, child in self._all() if child["state"] in _AT_REST]

    def paused(self) -> list[int]:
        """The items whose instances are paused."""
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

    def continue_after_pause(self) -> None:
        """Mark what stands still as to be continued."""
        for index in self.at_rest():
            self._children[str(index)]["again"] = True

    def continue_for_new_attempt(self) -> None:
        """Mark what stands still and did not succeed as to be continued, or to be started anew."""
        for index, child in list(self._all()):
            if child["state"] == REFUSED:
                del self._children[str(index)]
            elif child["state"] in _AGAIN:
                child["again"] = True

    def next_again(self) -> tuple[int, CommandType] | None:
        """Return the first child to be continued and how. None: there is none."""
        for index, child in self._all():
            if "again" in child and child["state"] in _AGAIN:
                return index, _AGAIN[child["state"]]
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
