"""What a workflow instance is and how its tasks are judged: section 1 of docs/semantics.md.

The reference for ``decide`` is written from that page and naive on purpose. It holds every attempt
that ever was, and after each event looks at everything anew: no counters, no indexes, nothing kept
in step. Tasks and states are plain text, times are seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

OPEN = {"WAITING", "DELAYED", "BLOCKED", "UP_FOR_RETRY", "PAUSED", "QUEUED", "CLAIMED", "RUNNING"}
BETWEEN_LOOKS = {"DELAYED", "BLOCKED", "QUEUED"}  # if there was one
HELD = {"CLAIMED", "RUNNING"}  # "what runs": by a worker, or by the master
FAILURES = {"FAILED", "KILLED", "LOST"}
BY_MASTER = {"SUB_WORKFLOW", "MAP", "DEPENDENT", "CONDITIONS", "SWITCH"}
NESTED = {"SUB_WORKFLOW", "MAP"}
CHOOSERS = {"CONDITIONS", "SWITCH"}
START = "START"  # a judgement beside the causes of being skipped
Key = tuple[str, int]  # (task, attempt number)


@dataclass
class Child:
    """A sub-workflow's instance that works for an attempt, as far as the attempt knows."""

    told: str = ""  # how it was, as it has told last
    asked: str = "START"  # what it was asked last
    number: int = 0  # of that request
    unanswered: bool = True
    again: bool = False  # it stands still, and is to go on
    aside: bool = False  # its master cannot work with it
    known: bool = False  # the instance exists, as the attempt has heard


@dataclass
class Try:
    """One attempt."""

    number: int
    state: str = "WAITING"
    cause: str | None = None  # of being SKIPPED
    ready: bool = False  # it may start, and will once nothing holds it back
    fresh: bool = False  # it is ready, and its delay has not begun
    retry: bool = False  # it follows an attempt that failed
    failures: int = 0  # earlier attempts since the task's (re)start that failed
    losses: int = 0  # attempts in a row before it that were lost
    looks: int = 0  # attempts before it that have not found what the task waits for
    since: float | None = None  # the timeout counts, if there were looks
    due: float = 0.0  # it starts no earlier
    exact: bool = True  # ``due`` waits for no random part
    slot: bool = False  # of its concurrency group
    worker: str | None = None
    returns: int = 0  # by workers that had not begun
    started: float | None = None
    told_to_die: bool = False  # that cannot be taken back
    request: bool = False  # somebody asked to kill it
    overdue: bool = False  # it ran longer than a timeout that fails it
    warned: bool = False
    children: dict[int, Child] = field(default_factory=dict)  # by item
    forced: bool = False
    chosen: frozenset[str] | None = None  # of a CONDITIONS or SWITCH task


class Instance:
    """Everything that is known, and the questions that section 1 asks about it."""

    def __init__(
        self, definition: Mapping[str, Any], selected: frozenset[str] | None, admitted: bool
    ) -> None:
        self.definition = definition
        self.tasks: Mapping[str, Mapping[str, Any]] = definition["tasks"]
        self.strategy: str = definition.get("on_failure", "continue")
        self.selected = selected
        self.admitted = admitted
        self.state = "QUEUED"
        self.now = 0.0
        self.started: float | None = None
        self.warned = False  # of the workflow's timeout
        self.taken_in_hand = False  # by a person: it is not timed any more
        self.tries = {task: [Try(1)] for task in self.tasks}
        self.named_in_conditions = {
            name
            for task, spec in self.tasks.items()
            if spec.get("type") == "CONDITIONS" and self.takes_part(task)
            for name in named_in(spec["params"]["when"])
        }
        self.kinds = {task: str(spec.get("type", "SHELL")) for task, spec in self.tasks.items()}

    # -- looking -----------------------------------------------------------------------------

    def last(self, task: str) -> Try:
        """The newest attempt."""
        return self.tries[task][-1]

    def kind(self, task: str) -> str:
        """The task's type."""
        return self.kinds[task]

    def upstream(self, task: str) -> Sequence[str]:
        """The tasks that it depends on."""
        found: Sequence[str] = self.tasks[task]["depends_on"]
        return found

    def rule(self, task: str) -> str:
        """Its ``run_when``."""
        if self.kind(task) == "CONDITIONS":
            return "all_done"
        return str(self.tasks[task].get("run_when", "all_success"))

    def options(self, chooser: str) -> set[str]:
        """The tasks that a CONDITIONS or SWITCH task chooses from."""
        params = self.tasks[chooser]["params"]
        if self.kind(chooser) == "CONDITIONS":
            return {*params.get("then", ()), *params.get("else", ())}
        return {*params.get("default", ()), *(t for c in params["cases"] for t in c["then"])}

    def takes_part(self, task: str) -> bool:
        """Whether it is enabled and the run is about it."""
        selected = self.selected is None or task in self.selected
        return selected and bool(self.tasks[task].get("enabled", True))

    def handled(self, task: str) -> bool:
        """Whether a CONDITIONS task downstream that takes part names it in its condition."""
        return task in self.named_in_conditions

    def failing(self, without: Iterable[str] = ()) -> bool:
        """Whether the failure strategy starts nothing more, be it ``without`` some tasks."""
        return self.strategy in ("finish_running", "fail_fast") and any(
            self.last(task).state in ("FAILED", "LOST") and not self.handled(task)
            for task in self.tasks
            if task not in without
        )

    def exempt(self, task: str) -> bool:
        """Whether it exists for the case of a failure: the strategy leaves it alone."""
        return self.rule(task) in ("any_failed", "always")

    def must_end(self, task: str) -> bool:
        """Whether an attempt that runs has to be killed."""
        last = self.last(task)
        if last.state not in HELD:
            return False
        asked = last.request or last.overdue or self.state == "STOPPING"
        return last.told_to_die or asked or self.dies_fast(task)

    def dies_fast(self, task: str) -> bool:
        """Whether the strategy kills what runs."""
        return self.strategy == "fail_fast" and self.failing() and not self.exempt(task)

    def looks_later(self, task: str) -> bool:
        """Whether it waits for another look."""
        return self.last(task).looks > 0 and self.last(task).state in BETWEEN_LOOKS

    def queued(self) -> set[Key]:
        """Attempts that stand in the queue of a worker group."""
        return {(t, self.last(t).number) for t in self.tasks if self.last(t).state == "QUEUED"}

    def to_kill(self) -> set[Key]:
        """Attempts that workers run and have been told to kill."""
        return {
            (task, self.last(task).number)
            for task in self.tasks
            if self.last(task).state in HELD and self.last(task).worker is not None
            if self.last(task).told_to_die
        }

    # -- section 1: when a task starts -----------------------------------------------------------

    def seen(self, upstream: str, task: str) -> set[str]:
        """What ``upstream`` is for ``task``; empty while it has no final result."""
        last = self.last(upstream)
        if last.state in OPEN:
            return set()
        if last.state == "SUCCEEDED":
            chosen = last.chosen
            if chosen is not None and task in self.options(upstream) and task not in chosen:
                return {"not taken"}
            return {"passed"}
        if last.state in FAILURES:
            return {"failed", "passed"} if self.strategy == "ignore" else {"failed"}
        if last.cause == "BRANCH":
            return {"neutral"}
        return {"blocked"} if last.cause in ("UPSTREAM", "FAILING") else {"passed"}

    def judge(self, task: str) -> str | None:
        """START, the cause of being skipped, or None: it waits."""
        seen = [self.seen(upstream, task) for upstream in self.upstream(task)]
        if any("not taken" in one for one in seen):
            return "BRANCH"
        if self.takes_part(task):
            return by_rule(self.rule(task), seen)
        if not all(seen):
            return None
        verdict = by_rule("all_success", seen)
        if verdict != START:
            return verdict
        return "NOT_SELECTED" if self.tasks[task].get("enabled", True) else "DISABLED"


def by_rule(rule: str, seen: list[set[str]]) -> str | None:
    """START, UPSTREAM, BRANCH, or None: it waits. The table of section 1."""
    final = all(seen)
    passed = any("passed" in one for one in seen)
    failed = any("failed" in one for one in seen)
    blocked = any("blocked" in one for one in seen)
    all_neutral = bool(seen) and all(one == {"neutral"} for one in seen)
    if not seen:
        return START
    match rule:
        case "all_success":
            if blocked or any("failed" in one and "passed" not in one for one in seen):
                return "UPSTREAM"
            return None if not final else "BRANCH" if all_neutral else START
        case "all_done" | "always":
            return START if final else None
        case "one_success":
            if passed:
                return START
            return None if not final else "BRANCH" if all_neutral else "UPSTREAM"
        case "any_failed":
            if failed:
                return START
            return None if not final else "UPSTREAM" if blocked else "BRANCH"
    raise ValueError(f"no such rule: {rule}")


def named_in(condition: Mapping[str, Any]) -> set[str]:
    """The tasks of a condition."""
    if "task" in condition:
        return {condition["task"]}
    parts = condition.get("all") or condition.get("any") or [condition["not"]]
    return {task for part in parts for task in named_in(part)}
