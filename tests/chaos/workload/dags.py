"""Random workflow definitions of the fault suite's own tasks. Same generator, same definitions."""

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TASK_PROGRAM = Path(__file__).parent / "task.py"
MARKER = "chaos_run"  # the parameter that marks every process of the workload
PROGRAM_VARIABLE = "CHAOS_PROGRAM"  # see task.py
MARKER_VARIABLE = f"SHOAL_PARAM_{MARKER.upper()}"
TICKER, TICKERS = "ticker", 6  # the workflows with schedules
GATE, GATE_SLOTS = "gate", 2  # the concurrency group
PASSING = "passing"  # the project of the runs that are purged, which the checker leaves out
DATED = "dated"  # the workflow of the backfills
PROGRAM = "chaos/run.sh"  # the resource that some tasks have as their program
LEFT = "left.txt"  # what some tasks hand over; see task.py
HANDED_OVER = "handed/"  # the resources that it becomes
POLICIES = ("queue", "queue_latest", "skip_new", "replace")  # of those that must not overlap

_STRATEGIES = ("continue", "continue", "finish_running", "fail_fast", "ignore")
_RUN_WHEN = ("all_success",) * 14 + ("all_done",) * 2 + ("one_success", "any_failed", "always")
_PRIORITIES = ("HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST")
_LONGEST_S = 8.0
_MOST_TASKS = 40
_FROM_RESOURCE = 0.2  # share of the tasks
_HANDING_OVER = 0.1  # share of the tasks
_MOST_HANDED_OVER = 8  # resources: few, so that successes meet
_LONGEST_CHAIN = 12  # an instance shall end in less than a minute


@dataclass(frozen=True)
class Site:
    """What every definition of one run of the suite has in common."""

    ledger: Path  # folder
    marker: str
    groups: Sequence[str] = ("default",)  # worker groups that have workers


def program(number: int) -> bytes:
    """Return the content of ``PROGRAM`` in its version ``number``, which its tasks write down."""
    return f'export {PROGRAM_VARIABLE}={number}\nexec "$@"\n'.encode()


def random_workflow(name: str, rng: random.Random, site: Site) -> dict[str, Any]:
    """Return a definition with 1 to 40 tasks."""
    size = rng.choice((1, rng.randint(2, 6), rng.randint(4, 12), rng.randint(8, _MOST_TASKS)))
    names = [f"t{n:02d}" for n in range(size)]
    width = rng.choice((4, 16) if size > _LONGEST_CHAIN else (1, 2, 4))  # 1: mostly a chain
    tasks = []
    for position, task in enumerate(names):
        earlier = names[max(0, position - 2 * width) : position]
        upstream = rng.sample(earlier, min(len(earlier), rng.choice((0, 1, 1, 1, 2, 3))))
        fields = _task(rng, site)
        if not upstream and fields["run_when"] == "any_failed":
            fields["run_when"] = "all_success"  # nothing is there that could fail
        tasks.append({"name": task, "depends_on": sorted(upstream), **fields})
    return _workflow(
        name,
        site,
        tasks,
        on_failure=rng.choice(_STRATEGIES),
        priority=rng.choice(_PRIORITIES),
    )


def tickers(site: Site, *, enabled: bool) -> list[dict[str, Any]]:
    """Return workflows of one quick task; together their schedules fire every two seconds.

    Several, so that every master has some: a workflow's schedules belong to one partition.
    """
    tasks = [{"name": "tick", **_program({"s": 0, "lines": 1}, site)}]
    return [
        _workflow(
            f"{TICKER}-{number}",
            site,
            tasks,
            schedules=[{"cron": f"{2 * number}/{2 * TICKERS} * * * * ?", "enabled": enabled}],
        )
        for number in range(TICKERS)
    ]


def composed(site: Site) -> list[dict[str, Any]]:
    """Return workflows whose tasks run other workflows, share slots, or must not overlap.

    What is nested comes first: a workflow names only those before it.
    """
    leaf = [
        {"name": "one", **_program({"s": 0.2, "lines": 1}, site)},
        {
            "name": "two",
            "depends_on": ["one"],
            "retries": 1,
            **_program({"s": 0, "fail": [1]}, site),
        },
    ]
    gated = [
        {
            "name": f"gated-{number}",
            "concurrency_group": GATE,
            **_program({"s": 0.5, "lines": 1}, site),
        }
        for number in range(4)
    ]
    nested = [
        {"name": "before", **_program({"s": 0}, site)},
        {
            "name": "child",
            "type": "SUB_WORKFLOW",
            "depends_on": ["before"],
            "params": {"workflow": "leaf"},
        },
        {
            "name": "children",
            "type": "MAP",
            "depends_on": ["before"],
            "params": {"workflow": "leaf", "items": ["a", "b", "c"], "parallel": 2},
        },
        {"name": "after", "depends_on": ["child", "children"], **_program({"s": 0}, site)},
    ]
    deeper = [
        {"name": "nest", "type": "SUB_WORKFLOW", "params": {"workflow": "nest"}},
        {"name": "after", "depends_on": ["nest"], **_program({"s": 0}, site)},
    ]
    alone = [{"name": "work", **_program({"s": 0.5}, site)}]
    return [
        _workflow("leaf", site, leaf, parameters={MARKER: site.marker, "item": ""}),
        _workflow("nest", site, nested),
        _workflow("deep", site, deeper),
        _workflow("gated", site, gated),
        *(_workflow(f"alone-{policy}", site, alone, overlap=policy) for policy in POLICIES),
        _workflow(DATED, site, alone),
    ]


def victim(name: str, site: Site) -> dict[str, Any]:
    """Return a workflow whose first task has outputs, and whose second one takes a while."""
    tasks = [
        {"name": "first", **_program({"s": 0}, site)},
        {"name": "second", "depends_on": ["first"], **_program({"s": 20}, site)},
    ]
    return _workflow(name, site, tasks)


def passing(marker: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a workflow that is over at once, and one that stays open; neither writes a ledger."""

    def of(name: str, script: str) -> dict[str, Any]:
        tasks = [{"name": "pass", "type": "SHELL", "params": {"script": script}}]
        return {"name": name, "parameters": {MARKER: marker}, "tasks": tasks}

    return of("passing", "exit 0"), of("staying", "sleep 25")


def _workflow(name: str, site: Site, tasks: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {"name": name, "parameters": {MARKER: site.marker}, "tasks": tasks} | fields


def _task(rng: random.Random, site: Site) -> dict[str, Any]:
    """Return all of a task but its name and its place in the graph."""
    behaviour: dict[str, Any] = {"s": _duration(rng), "lines": rng.choice((0, 1, 3, 40))}
    if rng.random() < 0.1:
        behaviour["deaf"] = True
    if rng.random() < 0.12:
        behaviour["children"] = rng.choices(("fork", "setsid", "double"), k=rng.randint(1, 2))
    fields: dict[str, Any] = {
        "priority": rng.choice(_PRIORITIES),
        "worker_group": rng.choice(site.groups),
        "run_when": rng.choice(_RUN_WHEN),
        "enabled": rng.random() > 0.03,
        "retries": rng.choice((0, 0, 1, 2)),
        "retry_delay": rng.choice((0, 0, 0.5)),
        **_failure(rng, behaviour),
    }
    is_resource = rng.random() < _FROM_RESOURCE
    if rng.random() < _HANDING_OVER:
        behaviour["leaves"] = LEFT
        fields["publish"] = {LEFT: f"{HANDED_OVER}{rng.randrange(_MOST_HANDED_OVER)}.txt"}
    return {**_program(behaviour, site, is_resource=is_resource), **fields}


def _duration(rng: random.Random) -> float:
    """Seconds: a third of the tasks do nothing, a quarter are there when a fault comes."""
    kind = rng.random()
    if kind < 0.35:
        return 0.0
    return round(rng.uniform(0.3, 2.5) if kind < 0.75 else rng.uniform(2.5, _LONGEST_S), 2)


def _failure(rng: random.Random, behaviour: dict[str, Any]) -> dict[str, Any]:
    """Let some tasks fail: once, always, or by their timeout. Returns fields to override."""
    kind = rng.random()
    if kind < 0.1:
        behaviour["fail"] = [1]
        return {"retries": rng.choice((0, 1, 1, 2))}
    if kind < 0.13:
        behaviour["fail"] = [-1]
        return {"retries": rng.randint(0, 1)}
    if kind < 0.15:
        behaviour["s"] = 30
        return {"timeout": 1.0, "retries": rng.randint(0, 1)}
    return {}


def _program(behaviour: dict[str, Any], site: Site, *, is_resource: bool = False) -> dict[str, Any]:
    arguments = [
        sys.executable,
        "-I",
        "-S",
        str(TASK_PROGRAM),
        str(site.ledger),
        json.dumps(behaviour),
    ]
    program = {"file": PROGRAM} if is_resource else {"script": 'exec "$@"'}
    return {"type": "SHELL", "params": {**program, "arguments": arguments}}
