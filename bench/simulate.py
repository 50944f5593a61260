"""Measure a simulated week of many workflows: time, processor time and memory of one process.

Workflows have 5 to 10 tasks in layers, start hourly to daily, and share one worker group whose
slots are busy most of the time. Everything follows from the seed.
"""

import argparse
import json
import random
import resource
import sys
import time
from datetime import UTC, datetime, timedelta

from bench.support.machine import machine
from shoal.core.definition.model import WorkflowSpec
from shoal.insight.simulate.model import GroupModel, Model, TaskHistory, WorkflowModel
from shoal.insight.simulate.result import simulate
from shoal.insight.simulate.simulation import Question, play

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
EVERY_HOURS = (1, 2, 3, 4, 6, 8, 12, 24)  # as many workflows of each
SAMPLES = 20  # of the duration of each task


def main() -> None:
    """Entry point of the program."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulate", description=__doc__)
    parser.add_argument("--workflows", type=int, default=1_000)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--slots", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1, help="the quickest of so many counts")
    parser.add_argument("--enough", action="store_true", help="search a number of slots as well")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    model = model_of(given.workflows, given.slots, given.seed)
    question = Question(START, START + timedelta(days=given.days), given.seed)
    rounds = [_measure(model, question, search=given.enough) for _ in range(given.rounds)]
    measured = min(rounds, key=lambda one: one["processor_s"])
    sys.stdout.write((json.dumps(measured) if given.json else _table(measured)) + "\n")


def _measure(model: Model, question: Question, *, search: bool) -> dict[str, float]:
    """Simulate once; return what it took."""
    began, worked = time.perf_counter(), time.process_time()
    if search:
        result = simulate(model, question)
        runs, attempts, busy = result.runs, result.attempts, result.groups[0].utilisation
    else:
        cluster = play(model, question)
        runs = sum(notes.runs for notes in cluster.ledger.of.values())
        attempts, pool = cluster.attempts, cluster.groups["default"]
        busy = pool.busy_s / (pool.slots * (question.end - question.start).total_seconds())
    processor_s = time.process_time() - worked
    return {
        "workflows": len(model.workflows),
        "days": (question.end - question.start).days,
        "runs": runs,
        "attempts": attempts,
        "utilisation": round(busy, 3),
        "wall_s": round(time.perf_counter() - began, 1),
        "processor_s": round(processor_s, 1),
        "attempt_us": round(processor_s / attempts * 1e6),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def model_of(workflows: int, slots: int, seed: int) -> Model:
    """Return a model with so many workflows; the same for the same seed."""
    chance = random.Random(seed)
    return Model(
        at=START,
        groups={"default": GroupModel(slots=slots, start_s=0.02)},
        workflows=tuple(_workflow(f"w{number:04d}", number, chance) for number in range(workflows)),
    )


def _workflow(name: str, number: int, chance: random.Random) -> WorkflowModel:
    every = EVERY_HOURS[number % len(EVERY_HOURS)]
    hours = ",".join(map(str, range(chance.randrange(every), 24, every)))
    tasks: list[dict[str, object]] = []
    for index in range(chance.randint(5, 10)):
        before = [f"t{chance.randrange(index)}" for _ in range(min(index, 2))]
        tasks.append(
            {
                "name": f"t{index}",
                "type": "SHELL",
                "params": {"script": "true"},
                "depends_on": sorted(set(before)),
                "retries": 1,
                "retry_delay": "1m",
            }
        )
    definition = {
        "name": name,
        "deadline": "2h",
        "schedules": [{"cron": f"0 {chance.choice((0, 0, 15, 30, 45))} {hours} * * ?"}],
        "tasks": tasks,
    }
    return WorkflowModel(
        definition=WorkflowSpec.model_validate(definition),
        tasks={f"t{index}": _history(chance) for index in range(len(tasks))},
    )


def _history(chance: random.Random) -> TaskHistory:
    typical_s = chance.lognormvariate(4.2, 0.8)  # the median of the medians: 67 s
    seconds = tuple(typical_s * chance.lognormvariate(0, 0.3) for _ in range(SAMPLES))
    return TaskHistory(seconds=seconds, failure=0.01)


def _table(measured: dict[str, float]) -> str:
    return (
        "| workflows | days | runs | attempts | slots busy | wall s | processor s "
        "| µs per attempt | peak MiB |\n"
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| {workflows:,} | {days} | {runs:,} | {attempts:,} | {utilisation:.0%} | {wall_s} | "
        "{processor_s} | {attempt_us} | {peak_mib} |".format(**measured)
        + f"\n\n{machine()}"
    )


if __name__ == "__main__":
    main()
