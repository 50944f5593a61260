"""What a SUB_WORKFLOW or MAP task knows of its instances: the ``detail`` of its attempt.

``{"items": [...], "children": {"0": {"instance": 12, "state": "RUNNING", ...}, ...}}``: one child
for each item; a SUB_WORKFLOW has one item, null. ``child_states.py`` has the states and what
changes them. ``outputs`` and ``reason`` are of the child's last report. ``asks`` counts the
requests that it was sent; ``asked`` is the latest one while it has not answered. ``again`` is there
(true) while the child is to be continued, ``quarantined`` while its master cannot work with it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from shoal.core.decide.child_states import (
    AT_REST,
    CONTINUATION_TRANSITIONS,
    CONTINUED_BY,
    ENDED,
    MOVING,
    REPORTS,
    REQUESTS,
    ChildEvent,
    ChildState,
    Continuation,
    allows,
    next_child_state,
)
from shoal.core.errors import LONGEST_REASON, shortened
from shoal.core.runs.commands import CommandType
from shoal.core.runs.events import ChildChanged
from shoal.core.runs.run import Attempt

_CONTINUING = frozenset(CONTINUED_BY.values())


class Child(TypedDict, total=False):
    """One child as it is stored."""

    state: str  # a ChildState; always there
    instance: int
    reason: str | None
    outputs: dict[str, str]
    asks: int
    asked: str  # a CommandType
    again: bool
    quarantined: bool


class ChildRuns:
    """A changeable copy of the children of one attempt."""

    def __init__(self, attempt: Attempt) -> None:
        # A thousand of them report several times each: no deeper a copy than what is changed.
        stored: Mapping[str, Child] = attempt.detail.get("children", {})
        self._children: dict[str, Child] = {i: child.copy() for i, child in stored.items()}
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
        self._children[str(index)] = {"state": ChildState.STARTING}

    def any_started(self) -> bool:
        """Whether any item has a child."""
        return bool(self._children)

    def refuse(self, index: int, reason: str) -> None:
        """Note that the child of an item cannot be started, and why."""
        self._children[str(index)] = {
            "state": next_child_state(ChildState.STARTING, ChildEvent.IS_REFUSED),
            "reason": shortened(reason, LONGEST_REASON),
        }

    def ask(self, index: int, request: CommandType) -> tuple[int, int | None]:
        """Note that a child is sent a request; return its number and the child's instance."""
        child = self._children[str(index)]
        _apply(child, REQUESTS[request])
        child["asks"] = child.get("asks", 0) + 1
        child["asked"] = request
        return child["asks"], child.get("instance")

    def take(self, index: int, report: ChildChanged) -> bool:
        """Note what a child reports; False: it still has to answer a later request."""
        child = self._children[str(index)]
        child.pop("quarantined", None)  # else it could not report
        if report.instance_id is not None:
            child["instance"] = report.instance_id
        if report.ask is not None and report.ask < child.get("asks", 0):
            return False
        _apply(child, REPORTS[report.state])
        child["reason"], child["outputs"] = report.reason, dict(report.outputs)
        asked, state = child.pop("asked", None), _state(child)
        missed = report.refused and asked in _CONTINUING and asked != CONTINUED_BY.get(state)
        if missed and allows(state, ChildEvent.MISS):
            _apply(child, ChildEvent.MISS)
        return True

    def quarantine(self, index: int, instance_id: int | None, *, is_quarantined: bool) -> None:
        """Note that a child was quarantined, or is tried again; ``instance_id`` None: its start."""
        child = self._children[str(index)]
        if instance_id is not None:
            child["instance"] = instance_id
        if is_quarantined:
            child["quarantined"] = True
        else:
            child.pop("quarantined", None)

    def state(self, index: int) -> ChildState | None:
        """Return how the child of an item stands, None if it was not started."""
        child = self.of(index)
        return None if child is None else _state(child)

    def moving(self) -> list[int]:
        """The items whose instances work, or are about to, or have not answered."""
        return [i for i, child in self._all() if child["state"] in MOVING]

    def with_place(self) -> list[int]:
        """As ``moving``, without those that are quarantined: these hold no place of the window."""
        return [i for i in self.moving() if "quarantined" not in self._children[str(i)]]

    def left_alone(self) -> list[int]:
        """The quarantined instances, by id, that a task which is to end or pause does not wait for.

        A quarantined start is not among them: the request to stop withdraws it at once, and a later
        attempt could not name it.
        """
        return [self._children[str(i)]["instance"] for i in self.moving() if self._is_left_alone(i)]

    def is_awaited(self) -> bool:
        """Whether a task that is to end or pause waits for an instance."""
        return len(self.moving()) > len(self.left_alone())

    def _is_left_alone(self, index: int) -> bool:
        child = self._children[str(index)]
        return "quarantined" in child and "instance" in child

    def working(self) -> list[int]:
        """The items whose instances a pause waits for.

        Those that ``is_awaited`` counts, without those that wait for other runs of their workflow.
        """
        moving = [i for i in self.moving() if not self._is_left_alone(i)]
        return [i for i in moving if self.state(i) is not ChildState.QUEUED]

    def at_rest(self) -> list[int]:
        """The items whose instances stand still but have not ended."""
        return [i for i, child in self._all() if child["state"] in AT_REST]

    def paused(self) -> list[int]:
        """The items whose instances are paused."""
        return [i for i, child in self._all() if child["state"] == ChildState.PAUSED]

    def not_succeeded(self) -> list[int]:
        """The items whose instances did not succeed, or were not started."""
        return [
            i
            for i in range(len(self.items or ()))
            if (child := self.of(i)) is None or child["state"] != ChildState.SUCCEEDED
        ]

    def all_ended(self) -> bool:
        """Whether there is nothing left to start, to continue, or to wait for."""
        items = self.items or ()
        return len(self._children) == len(items) and all(
            child["state"] in ENDED and "again" not in child for _, child in self._all()
        )

    def continue_after_pause(self) -> None:
        """Mark what stands still as to be continued."""
        for index in self.at_rest():
            _apply(self._children[str(index)], ChildEvent.CONTINUE)

    def continue_for_new_attempt(self) -> None:
        """Mark what stands still and did not succeed as to be continued, or to be started anew.

        News of a quarantine and of its end went to the attempt before, which may have ended: this
        one hears of it when the child's next try fails.
        """
        for index, child in list(self._all()):
            child.pop("quarantined", None)
            if child["state"] == ChildState.REFUSED:
                del self._children[str(index)]
            elif allows(_state(child), ChildEvent.CONTINUE):
                _apply(child, ChildEvent.CONTINUE)

    def to_continue(self) -> Iterator[tuple[int, CommandType]]:
        """Yield each child to be continued and how. Children may be asked meanwhile."""
        for index, child in self._all():
            if "again" in child and (request := CONTINUED_BY.get(_state(child))):
                yield index, request

    def to_start(self) -> Iterator[int]:
        """Yield each item without a child. Children of those may be added meanwhile."""
        return (i for i in range(len(self.items or ())) if str(i) not in self._children)

    def outputs(self) -> list[Mapping[str, str]]:
        """What each item's instance has given, in the order of the items."""
        found = (self.of(i) for i in range(len(self.items or ())))
        return [child.get("outputs") or {} if child else {} for child in found]

    def _all(self) -> Iterator[tuple[int, Child]]:
        yield from ((int(index), child) for index, child in self._children.items())


def _state(child: Child) -> ChildState:
    return ChildState(child["state"])


def _apply(child: Child, event: ChildEvent) -> None:
    """Let ``event`` change a child. Raises IllegalTransition."""
    mark = Continuation.DUE if "again" in child else Continuation.NONE
    child["state"] = next_child_state(_state(child), event)
    if CONTINUATION_TRANSITIONS[mark, event] is Continuation.DUE:
        child["again"] = True
    else:
        child.pop("again", None)
