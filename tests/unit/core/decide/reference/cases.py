"""Random cases: a definition, what the run is about, and what happens to it.

A case is plain data, so that it can be printed, cut down and played again.
"""

import random
from dataclasses import dataclass
from typing import Any

Move = tuple[Any, ...]  # what happens next; ``world`` knows the words

RULES = ("all_success", "all_done", "one_success", "any_failed", "always")
STRATEGIES = ("continue", "finish_running", "fail_fast", "ignore")
OF_CHOOSERS = ("depends_on", "run_when", "enabled")  # the fields that make sense for choices
NESTED = ("SUB_WORKFLOW", "MAP")
# Expressions of SWITCH tasks, and what they come to; None: they cannot be evaluated.
TRUTH: dict[str, bool | None] = {"1 == 1": True, "1 == 2": False, "nowhere == 1": None}


@dataclass(frozen=True)
class Case:
    """One instance and its fate. ``selected`` None: it is about all tasks.

    First come the ``moves``; then all goes well, but the tasks in ``failing`` always fail.
    """

    definition: dict[str, Any]
    selected: frozenset[str] | None
    admitted: bool
    moves: tuple[Move, ...] = ()
    failing: frozenset[str] = frozenset()


def random_case(dice: random.Random) -> Case:
    """A case without moves."""
    family = dice.random() < 0.12  # little but tasks with nested instances
    count = dice.choice((1, 2, 3)) if family else dice.choice((1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 9, 12))
    density = dice.choice((0.15, 0.3, 0.6))
    plain = dice.random() < 0.4  # nothing but SHELL tasks
    tasks: dict[str, dict[str, Any]] = {}
    for name in "abcdefghijkl"[:count]:
        upstream = [other for other in tasks if dice.random() < density]
        tasks[name] = random_task(dice, upstream)
    if family or not plain:
        give_types(dice, tasks, family=family)
    definition: dict[str, Any] = {"tasks": tasks, "on_failure": dice.choice(STRATEGIES)}
    if dice.random() < 0.15:
        definition["timeout"] = dice.choice((6, 15))
        definition["timeout_action"] = dice.choice(("warn", "stop", "both"))
    selected = None
    if dice.random() < 0.15:
        selected = frozenset(name for name in tasks if dice.random() < 0.6) or None
    failing = frozenset(name for name in tasks if dice.random() < dice.choice((0, 0.2, 0.5)))
    return Case(definition, selected, dice.random() < 0.95, failing=failing)


def random_task(dice: random.Random, upstream: list[str]) -> dict[str, Any]:
    """A SHELL task."""
    task: dict[str, Any] = {"depends_on": upstream}
    if upstream and dice.random() < 0.5:
        task["run_when"] = dice.choice(RULES)
    elif dice.random() < 0.1:
        task["run_when"] = dice.choice(("all_done", "always", "one_success"))
    if dice.random() < 0.1:
        task["enabled"] = False
    if dice.random() < 0.4:
        task["retries"] = dice.choice((1, 2))
        if dice.random() < 0.5:
            task["retry_delay"] = dice.choice((3, 6))
            task["retry_backoff"] = dice.choice((1, 2))
            if dice.random() < 0.3:
                task["retry_max_delay"] = 5
            if dice.random() < 0.3:
                task["retry_jitter"] = 0.5
    if dice.random() < 0.12:
        task["delay"] = dice.choice((2, 7))
    if dice.random() < 0.12:
        task["concurrency_group"] = "g"
    if dice.random() < 0.2:
        task["timeout"] = dice.choice((4, 9))
        task["timeout_action"] = dice.choice(("fail", "warn", "both"))
    return task


def give_types(dice: random.Random, tasks: dict[str, dict[str, Any]], *, family: bool) -> None:
    """Make some of the tasks others than SHELL tasks; of a ``family`` most are nested."""
    for name, task in tasks.items():
        downstream = [other for other in tasks if name in tasks[other]["depends_on"]]
        choices = ["SHELL", *NESTED * 3] if family else ["SHELL"] * 7 + ["DEPENDENT", *NESTED]
        if downstream and not family:
            choices += ["SWITCH", "SWITCH"]
            if task["depends_on"]:
                choices += ["CONDITIONS"] * 3
        kind = dice.choice(choices)
        if kind == "SHELL":
            continue
        if kind in ("CONDITIONS", "SWITCH"):
            for field in [field for field in task if field not in OF_CHOOSERS]:
                del task[field]
        task["type"] = kind
        task["params"] = {}
        if kind == "DEPENDENT":
            task["params"] = {"when": {"workflow": "other", "date": "today"}}
        elif kind == "SUB_WORKFLOW":
            task["params"] = {"workflow": "other"}
        elif kind == "MAP":
            items = list(range(dice.choice((0, 1, 2, 3))))
            task["params"] = {"workflow": "other", "items": items, "parallel": dice.choice((1, 2))}
        elif kind == "CONDITIONS":
            task.pop("run_when", None)
            then, otherwise = dealt(dice, downstream, 2)
            if not then and not otherwise:
                then = downstream
            task["params"] = {
                "when": random_condition(dice, task["depends_on"], 2),
                "then": then,
                "else": otherwise,
            }
        elif kind == "SWITCH":
            hands = dealt(dice, downstream, dice.choice((2, 3)))
            hands[1:] = [hand or [dice.choice(downstream)] for hand in hands[1:]]
            task["params"] = {
                "cases": [
                    {"when": dice.choice([*list(TRUTH)[:2], *TRUTH]), "then": hand}
                    for hand in hands[1:]
                ],
                "default": [t for t in hands[0] if not all(t in hand for hand in hands[1:])],
            }


def dealt(dice: random.Random, tasks: list[str], hands: int) -> list[list[str]]:
    """Deal out tasks to that many lists and to none."""
    found: list[list[str]] = [[] for _ in range(hands)]
    for task in tasks:
        hand = dice.randrange(hands + 1)
        if hand < hands:
            found[hand].append(task)
    return found


def random_condition(dice: random.Random, upstream: list[str], depth: int) -> dict[str, Any]:
    """A condition over some of these tasks."""
    kind = dice.choice(("task", "task", "all", "any", "not")) if depth else "task"
    if kind == "task":
        state = dice.choice(("success", "failure", "skipped", "done"))
        return {"task": dice.choice(upstream), "is": state}
    if kind == "not":
        return {"not": random_condition(dice, upstream, depth - 1)}
    return {kind: [random_condition(dice, upstream, depth - 1) for _ in range(dice.choice((1, 2)))]}


def as_written(case: Case) -> dict[str, Any]:
    """The definition as people write it."""
    fields = {key: value for key, value in case.definition.items() if key != "tasks"}
    tasks = [
        {"name": name, "type": "SHELL", "params": {"script": "true"}, **task}
        for name, task in case.definition["tasks"].items()
    ]
    return {"name": "w", "tasks": tasks, **fields}
