"""Families of runs to which anything happens, in any order: nothing hangs, successes are kept."""

import random
from typing import Any

import pytest

from shoal.core.runs.commands import CommandType
from shoal.core.runs.states import FINISHED_WORKFLOW, TaskSignal, TaskState, WorkflowState
from tests.unit.core.decide.family import Family, each, sub

FAIL = TaskSignal.FAIL
W = WorkflowState
PAUSE, RESUME = CommandType.PAUSE, CommandType.RESUME
STOP, RECOVER = CommandType.STOP, CommandType.RECOVER
WILD: dict[str, dict[str, dict[str, Any]]] = {
    "top": {
        "m": each("mid", [1, 2, 3], 2, retries=1),
        "s": sub("leaf", timeout=30),
        "z": {"depends_on": ["m", "s"], "run_when": "all_done"},
    },
    "mid": {"a": {"retries": 1}, "s": sub("leaf", depends_on=["a"], retries=1)},
    "leaf": {"x": {}, "y": {"depends_on": ["x"]}},
}


class Wild:
    """A family to which anything happens, in any order."""

    def __init__(self, seed: int, *, by_hand: bool) -> None:
        self.random = random.Random(seed)
        self.by_hand = by_hand
        waits = {"leaf"} if seed % 3 == 0 else set()
        self.family = Family(WILD, waits)
        self.top = self.family.create("top")

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
            self.check_window()

    def step(self) -> None:
        family, pick = self.family, self.random
        kind = pick.random()
        if kind < 0.45 and family.lines:
            family.deliver(pick.choice(list(family.lines)))
        elif kind < 0.52:
            family.take_over(pick.choice(list(family.members)))
        elif kind < 0.60:
            asked = pick.choice(list(family.members)) if self.by_hand else self.top
            family.ask(asked, pick.choice([PAUSE, RESUME, STOP, RECOVER]))
        elif kind < 0.62:
            family.pass_time(5)
        else:
            self.work(0.2)

    def work(self, failures: float) -> bool:
        """A worker, or admission, does something. Returns whether there was anything."""
        family, pick = self.family, self.random
        members = family.members.items()
        queued = [(i, t) for i, m in members for t in m.queue.values()]
        working = [(i, t) for i, m in members for t in m.working.values()]
        waiting = [i for i, m in members if m.run.state is W.QUEUED]
        if working and pick.random() < 0.6:
            instance, task = pick.choice(working)
            family.end(instance, task, FAIL if pick.random() < failures else TaskSignal.SUCCEED)
        elif queued:
            family.claim(*pick.choice(queued))
        elif waiting:
            family.admit(pick.choice(waiting))
        elif working:
            family.end(*working[0])
        return bool(queued or working or waiting)

    def settle(self) -> None:
        """Let everything come to rest."""
        for _ in range(2_000):
            self.family.deliver_all()
            for instance in list(self.family.members):
                self.family.take_over(instance)
            if not self.work(0.0) and not self.family.lines:
                return
        raise AssertionError("it goes on for ever")

    def check_window(self) -> None:
        if self.by_hand:
            return
        family = self.family
        moving = [
            i for i in family.of("mid") if family.state(i) not in (W.PAUSED, *FINISHED_WORKFLOW)
        ]
        assert len(moving) <= 2, "more items at a time than parallel"

    def check_rest(self) -> None:
        """Nothing moves: is everybody where the top says?"""
        family = self.family
        for instance, member in family.members.items():
            assert member.run.state not in (W.QUEUED, W.PAUSING, W.STOPPING), instance
            if member.run.state is W.RUNNING:
                held = [family.state(child) for child in family.children(instance)]
                at_rest = [s for s in held if s in (W.PAUSED, W.STOPPED, W.RUNNING)]
                assert at_rest, f"instance {instance} waits for nobody"
                assert self.by_hand
            self.check_records(instance)
        if self.by_hand:
            return
        if family.state(self.top) is W.PAUSED:
            allowed = {W.PAUSED, *FINISHED_WORKFLOW}
        else:
            allowed = set(FINISHED_WORKFLOW)
        assert {m.run.state for m in family.members.values()} <= allowed

    def check_records(self, instance: int) -> None:
        """What a task that is not over knows of its children is true."""
        family = self.family
        for attempt in family.members[instance].run.attempts.values():
            if attempt.finished:
                continue
            for child in attempt.detail.get("children", {}).values():
                member = family.members.get(child.get("instance", 0))
                parent = member.run.parent if member else None
                if parent is not None and parent.task_instance_id == attempt.id:
                    assert child["state"] == family.state(child["instance"]), (instance, child)

    def finish(self) -> None:
        """People ask until the top has succeeded; that takes no more than a request each."""
        family = self.family
        for _ in range(3 * len(family.members) + 3):
            self.settle()
            self.check_rest()
            if family.state(self.top) is W.SUCCEEDED:
                return
            for instance, member in list(family.members.items()):
                mine = instance == self.top or self.by_hand
                if mine and member.run.state in (W.PAUSED, W.STOPPED):
                    family.ask(instance, RESUME)
                elif mine and member.run.state is W.FAILED:
                    family.ask(instance, RECOVER)
        raise AssertionError(f"the top is {family.state(self.top)} and does not get on")


@pytest.mark.parametrize("by_hand", [False, True])
def test_whatever_happens_nothing_hangs_and_successes_are_kept(by_hand: bool) -> None:
    for seed in range(60):
        try:
            play(seed, by_hand=by_hand)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error


def play(seed: int, *, by_hand: bool) -> None:
    """One family's life. Raises AssertionError."""
    wild = Wild(seed, by_hand=by_hand)
    wild.run(120)
    wild.finish()
    for member in wild.family.members.values():
        done = [task for (task, _), a in member.stored.items() if a.state is TaskState.SUCCEEDED]
        assert len(done) == len(set(done)), "a success ran again"
