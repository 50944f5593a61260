"""The instances of SUB_WORKFLOW and MAP tasks: section 3 of docs/semantics.md.

What a task asks of them is taken from what ``decide`` sends, and checked to be what it should be;
what follows from their answers is predicted.
"""

from collections.abc import Iterable
from dataclasses import replace

from tests.unit.core.decide.reference.model import Child, Try

ENDED = {"SUCCEEDED", "FAILED", "REFUSED"}
AT_REST = {"PAUSED", "STOPPED"}
# How one that did not succeed is continued.
AGAIN = {"FAILED": "RECOVER", "STOPPED": "RESUME", "PAUSED": "RESUME"}


def stand(child: Child) -> str:
    """Where it is, or on its way to as long as it has not answered a request."""
    if child.unanswered:
        return {"PAUSE": "PAUSING", "STOP": "STOPPING"}.get(child.asked, "STARTING")
    return child.told


def moving(attempt: Try) -> list[Child]:
    """Those that neither rest nor have ended, as far as is known."""
    return [c for c in attempt.children.values() if stand(c) not in ENDED | AT_REST]


def in_window(attempt: Try) -> list[Child]:
    """Those that move, without those that are quarantined."""
    return [child for child in moving(attempt) if not child.aside]


def working(attempt: Try) -> list[Child]:
    """Those that a pause waits for: without those that are quarantined, or wait in line."""
    return [
        child
        for child in moving(attempt)
        if stand(child) != "QUEUED" and not (child.aside and child.known)
    ]


def all_in(attempt: Try, states: Iterable[str]) -> bool:
    """Whether all that there are stand in one of these states."""
    return all(stand(child) in states for child in attempt.children.values())


def all_quiet(attempt: Try) -> bool:
    """Whether none works that a task waits for at its end; quarantined ones are left alone."""
    return all(
        (child.aside and child.known) or stand(child) in ENDED | {"STOPPED"}
        for child in attempt.children.values()
    )


def all_ended(attempt: Try, items: int) -> bool:
    """Whether every item has one, and it has ended for good."""
    complete = len(attempt.children) == items and all_in(attempt, ENDED)
    return complete and not any(child.again for child in attempt.children.values())


def all_succeeded(attempt: Try, items: int) -> bool:
    """Whether every item has one that succeeded."""
    return len(attempt.children) == items and all_in(attempt, {"SUCCEEDED"})


def kept(attempt: Try) -> dict[int, Child]:
    """What the attempt after this one continues. Those that never came to be start anew.

    Nor does it know which are quarantined: the attempt before may have ended before them.
    """
    return {
        item: replace(child, again=stand(child) in AGAIN, aside=False)
        for item, child in attempt.children.items()
        if stand(child) != "REFUSED"
    }


def go_on_after_pause(attempt: Try) -> None:
    """What rests is to go on."""
    for child in attempt.children.values():
        child.again |= stand(child) in AT_REST


def set_out(attempt: Try, items: int, parallel: int) -> None:
    """A task starts to work: it continues and starts as many as there is room for."""
    waiting = [child for child in attempt.children.values() if child.again]
    for child in waiting[: max(0, parallel - len(in_window(attempt)))]:
        child.asked, child.unanswered, child.again = AGAIN[stand(child)], True, False
    new = [item for item in range(items) if item not in attempt.children]
    for item in new[: max(0, parallel - len(in_window(attempt)))]:
        attempt.children[item] = Child()


def ask(attempt: Try, item: int, request: str, number: int) -> None:
    """The task has asked one for something, or has started it."""
    if request == "START":
        attempt.children[item] = Child()
        return
    child = attempt.children[item]
    child.asked, child.number, child.unanswered, child.again = request, number, True, False


def expect_answers(attempt: Try, request: str) -> None:
    """All that move are asked for something: they stand nowhere until they have answered."""
    for child in moving(attempt):
        child.asked, child.unanswered = request, True


def hear(child: Child, state: str, number: int, refused: bool) -> None:
    """One tells how it is, and which request was the last that it has had."""
    child.aside = False
    child.known |= state != "REFUSED"
    if number < child.number:
        return  # the answer to the later request is still to come
    child.told, child.unanswered = state, False
    if state in ("SUCCEEDED", "RUNNING", "QUEUED", "REFUSED"):
        child.again = False
    elif refused and child.asked in AGAIN.values() and child.asked != AGAIN.get(state):
        child.again = True  # it was not where it was thought to be


def complaint(attempt: Try, instance: str, items: int, parallel: int) -> str | None:
    """What is wrong with what the task has asked for, None if nothing is."""
    children = [*attempt.children.values()]
    if attempt.told_to_die:
        alive = [c for c in children if stand(c) not in ENDED | {"STOPPED", "STOPPING"}]
        return "a dying task has not stopped all" if alive else None
    if instance == "PAUSING" and attempt.state == "RUNNING":
        loud = any(stand(child) in ("RUNNING", "STARTING") for child in children)
        return "a pause does not reach all" if loud else None
    resting = any(child.again and stand(child) in AGAIN for child in children)
    idle = resting or len(children) < items
    if attempt.state == "RUNNING" and idle and len(in_window(attempt)) < parallel:
        return "there is room, and something to be started or continued"
    return None
