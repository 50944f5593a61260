"""A group and a clock that the tests move: what the tests of the coordinator's rules ask."""

import itertools
from collections.abc import Sequence
from typing import TypeVar

from shoal.coordination.assignors import Partition
from shoal.coordination.errors import GroupError, MemberIdRequired
from shoal.coordination.group import (
    Answer,
    GroupMetadata,
    GroupState,
    Join,
    RefusedRequest,
    Request,
    Sync,
    Tick,
    decide,
)

P0, P1 = Partition("jobs", 0), Partition("jobs", 1)
DELAY_S, TIMEOUT_S = 3.0, 60.0

E = TypeVar("E", bound=GroupError)


class Table:
    """A group and a clock."""

    def __init__(self) -> None:
        self.group = GroupMetadata("g", initial_rebalance_delay_s=DELAY_S)
        self.now_s = 100.0
        self._ids = itertools.count()

    def ask(self, request: Request) -> list[Answer]:
        decision = decide(self.group, request, self.now_s)
        self.group = decision.group
        return list(decision.answers)

    def join(
        self,
        member_id: str | None = None,
        *,
        instance_id: str | None = None,
        assignors: Sequence[str] = ("range",),
        topics: Sequence[str] = ("jobs",),
        owned: Sequence[Partition] = (),
    ) -> list[Answer]:
        fresh_id = f"fresh{next(self._ids)}"
        counts = dict.fromkeys(topics, 2)
        return self.ask(Join(member_id, fresh_id, assignors, counts, TIMEOUT_S, instance_id, owned))

    def new(self, assignors: Sequence[str] = ("range",)) -> str:
        """Join as somebody new, with the id that is asked for."""
        [refused] = self.join(assignors=assignors)
        member_id = error_of(refused, MemberIdRequired).member_id
        self.join(member_id, assignors=assignors)
        return member_id

    def is_in(self, state: GroupState) -> bool:
        return self.group.state is state

    def pass_time(self, seconds: float) -> list[Answer]:
        self.now_s += seconds
        return self.ask(Tick())

    def stable(self, *members: str) -> None:
        """Let ``members``, all of the gathered group, sync; the first leads."""
        assignment = {member: [Partition("jobs", n)] for n, member in enumerate(members)}
        for member in members:
            self.ask(Sync(member, self.group.generation, assignment=assignment))
        assert self.is_in(GroupState.STABLE)

    def two(self) -> tuple[str, str]:
        """Return a stable group's leader and its follower."""
        leader, follower = self.new(), self.new()
        self.pass_time(DELAY_S)
        self.pass_time(DELAY_S)
        self.stable(leader, follower)
        return leader, follower


def error_of(answer: Answer, kind: type[E]) -> E:
    assert isinstance(answer, RefusedRequest)
    assert isinstance(answer.error, kind)
    return answer.error
