"""The instances that work for SUB_WORKFLOW and MAP tasks: small, but with a life of their own.

They live in the database: a takeover changes nothing here. Requests reach them in their order,
and so do their letters the task, but any time later.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from shoal.core.runs.run import AskChild, Message, StartChild
from tests.unit.core.decide.reference.model import Key

ENDED = {"SUCCEEDED", "FAILED", "STOPPED", "REFUSED"}
# What a request makes of an instance: the first for one that has nothing to finish first.
AFTER_REQUEST: dict[tuple[str, str], tuple[str, ...]] = {
    ("NEW", "START"): ("RUNNING", "RUNNING", "RUNNING", "QUEUED", "REFUSED"),
    ("RUNNING", "PAUSE"): ("PAUSED", "PAUSING"),
    **{(state, "RESUME"): ("RUNNING",) for state in ("PAUSING", "PAUSED", "STOPPED")},
    **{(state, "STOP"): ("STOPPED",) for state in ("QUEUED", "PAUSED")},
    **{(state, "STOP"): ("STOPPED", "STOPPING") for state in ("RUNNING", "PAUSING")},
    ("FAILED", "RECOVER"): ("RUNNING",),
}
# What becomes of it by itself, or because somebody asks for it: the first if all goes well.
BY_ITSELF: dict[str, tuple[str, ...]] = {
    "QUEUED": ("RUNNING", "STOPPED"),
    "RUNNING": ("SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "FAILED", "FAILED", "PAUSED", "STOPPED"),
    "PAUSING": ("PAUSED", "PAUSED", "SUCCEEDED", "FAILED", "RUNNING"),
    "PAUSED": ("RUNNING", "STOPPED"),
    "STOPPING": ("STOPPED", "STOPPED", "SUCCEEDED", "FAILED"),
    "STOPPED": ("RUNNING",),
    "FAILED": ("RUNNING",),
}


class Difference(AssertionError):
    """``decide`` and the reference do not agree, or a promise is broken."""


@dataclass(frozen=True)
class Request:
    """What a task asks of an instance."""

    kind: str
    number: int
    parent: Key


@dataclass(frozen=True)
class Letter:
    """What an instance tells the task that it works for. ``number``: of its latest request."""

    parent: Key
    state: str
    number: int
    refused: bool
    aside: bool | None = None  # that it is quarantined, or tried again, and nothing else


@dataclass
class Nested:
    """One of them."""

    item: int
    parent: Key
    state: str = "NEW"
    number: int = 0
    aside: bool = False  # it is quarantined
    own_will: bool = False  # it is where it is because somebody wanted it
    requests: deque[Request] = field(default_factory=deque)
    letters: deque[Letter] = field(default_factory=deque)

    def obey(self, pick: int) -> None:
        """Carry out the next request, and answer."""
        request = self.requests.popleft()
        self.parent, self.number = request.parent, request.number
        outcomes = AFTER_REQUEST.get((self.state, request.kind))
        if outcomes is not None:
            self.state, self.own_will = outcomes[pick % len(outcomes)], False
        self.tell(refused=outcomes is None)

    def live(self, pick: int) -> None:
        """Do something by itself."""
        outcomes = BY_ITSELF[self.state]
        before, self.state = self.state, outcomes[pick % len(outcomes)]
        admitted = (before, self.state) == ("QUEUED", "RUNNING")
        resumed_by_hand = (before, self.state) == ("PAUSING", "RUNNING")
        on_its_way = before in ("PAUSING", "STOPPING") and not resumed_by_hand
        self.own_will = not on_its_way and not admitted
        if self.state in ENDED | {"PAUSED"} or not on_its_way:
            self.tell(refused=False)

    def change_sides(self) -> None:
        """Be quarantined, or be tried again: the task is told."""
        self.aside = not self.aside
        self.letters.append(Letter(self.parent, self.state, -1, refused=False, aside=self.aside))

    def tell(self, *, refused: bool) -> None:
        """Write to the task."""
        self.letters.append(Letter(self.parent, self.state, self.number, refused))


class NestedInstances:
    """All of them, by id."""

    def __init__(self) -> None:
        self.all: dict[int, Nested] = {}
        self.started_by: dict[tuple[Key, int], int] = {}

    def take(self, message: Message) -> tuple[Key, int, str, int]:
        """Send on what a decision asks for. Returns attempt, item, request and its number."""
        match message:
            case StartChild(key=key, index=item):
                if (key, item) in self.started_by:
                    raise Difference(f"{key} starts item {item} twice")
                identity = self.started_by[key, item] = 100 + len(self.all)
                self.all[identity] = Nested(item, key)
                request = Request("START", 0, key)
            case AskChild(key=key, index=item, type=kind, number=number, instance_id=known):
                identity = self.started_by.get((key, item), 0) if known is None else known
                request = Request(str(kind), number, key)
            case _:
                raise Difference(f"nobody is to hear {message}")
        if identity not in self.all:
            raise Difference(f"{request} goes to an unknown instance of item {item}")
        self.all[identity].requests.append(request)
        return key, item, request.kind, request.number

    def with_letters(self) -> list[int]:
        """Those that have written to their task."""
        return [identity for identity, nested in self.all.items() if nested.letters]

    def with_requests(self) -> list[int]:
        """Those that are asked for something, and can hear it."""
        return [i for i, nested in self.all.items() if nested.requests and not nested.aside]

    def aside(self) -> list[int]:
        """Those that are quarantined."""
        return [identity for identity, nested in self.all.items() if nested.aside]

    def lively(self, parents: Iterable[Key]) -> list[int]:
        """Those that work for one of these attempts and may do something by themselves."""
        keys = {*parents}
        return [
            identity
            for identity, nested in self.all.items()
            if nested.state in BY_ITSELF and not nested.requests and nested.parent in keys
            if not nested.aside
        ]

    def left_alone(self) -> dict[int, str]:
        """Those that neither end nor were set going by hand: their states."""
        return {
            identity: nested.state
            for identity, nested in self.all.items()
            if nested.state not in ENDED | {"STOPPING"} and not nested.own_will
        }

    def noisy(self, parent: Key) -> list[int]:
        """Those that work for an attempt, and that nothing is going to change."""
        return [
            identity
            for identity, nested in self.all.items()
            if nested.parent == parent and nested.state == "RUNNING" and not nested.own_will
            if not nested.requests and not nested.letters and not nested.aside
        ]
