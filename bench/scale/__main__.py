"""Predict throughput and takeover of large clusters from what was measured on small ones."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from bench.scale.costs import Cluster, Costs
from bench.scale.simulation import Prediction, simulate
from bench.scale.takeover import takeover
from bench.support.machine import RESULTS

SIZES = (
    *((3, workers) for workers in (10, 100, 1_000, 10_000)),
    *((10, workers) for workers in (100, 1_000, 10_000)),
    *((30, workers) for workers in (100, 1_000, 10_000)),
    *((100, workers) for workers in (100, 1_000, 10_000)),
)
OPEN = 10_000  # instances, while a master dies
# Measured by bench.engine on one machine of two processors: masters, workers.
SMALL = ((1, 1), (2, 2))


def main() -> None:
    """Entry point of the program."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    add = parser.add_argument
    add("--engine", type=Path, default=RESULTS / "engine.json", help="the measured costs")
    add("--two", type=Path, default=RESULTS / "engine-2x2.json", help="two of each, for comparison")
    add("--workload", help="whose costs are taken; default: the last WIDE there is")
    add("--output", type=Path, default=RESULTS, help="folder of the results")
    given = parser.parse_args()
    costs = Costs.measured(given.engine, given.workload, "postgresql")
    rows = [(cluster, simulate(cluster, costs)) for cluster in clusters()]
    text = f"{fed(costs)}\n{table(rows, costs)}\n{small(given, costs)}"
    sys.stdout.write(text)
    given.output.mkdir(parents=True, exist_ok=True)
    (given.output / "scale.md").write_text(text, encoding="utf-8")
    content = {
        "costs": asdict(costs),
        "rows": [{**asdict(cluster), **asdict(found)} for cluster, found in rows],
    }
    (given.output / "scale.json").write_text(json.dumps(content, indent=1) + "\n")


def clusters() -> Iterator[Cluster]:
    """Yield what is predicted; the largest as it is, and as it would have to be run."""
    for masters, workers in SIZES:
        one = Cluster(masters, workers)
        yield one
        if workers > 1_000:
            yield replace(one, groups=workers // 100, load_s=30.0, reread_s=60.0)


def fed(costs: Costs) -> str:
    """Say what the model is fed with."""
    names = ("master", "agent", "launcher", "database", "zookeeper")
    parts = ", ".join(f"{name} {getattr(costs, name):.2f}" for name in names)
    return (
        f"Processor time per task in ms: {parts}; {costs.requests:.1f} requests to ZooKeeper, "
        f"{costs.write_ms:g} ms each that writes, {costs.read_ms:g} ms each that reads; a commit "
        f"takes {costs.commit_ms:g} ms, a round trip {costs.trip_ms:g} ms.\n"
    )


def table(rows: list[tuple[Cluster, Prediction]], costs: Costs) -> str:
    """Return the predictions as Markdown."""
    text = (
        "| masters | workers | in groups | load told, looked at every s | tasks/s "
        "| first bottleneck, and how busy it is | next "
        f"| takeover s, {OPEN:,} open instances | of it: noticing, agreeing, loading |\n"
        "| ---: | ---: | ---: | ---: | ---: | --- | --- | ---: | --- |\n"
    )
    for cluster, found in rows:
        busiest = sorted(found.busy.items(), key=lambda item: -item[1])[:2]
        first, second = (f"{kind} {_percent(part)}" for kind, part in busiest)
        gone = takeover(cluster, costs, OPEN)
        parts = f"{gone.noticed_s:.1f}, {gone.agreed_s:.2f}, {gone.loaded_s:.2f}"
        text += (
            f"| {cluster.masters} | {cluster.workers:,} | {cluster.groups} "
            f"| {cluster.load_s:g}, {cluster.reread_s:g} "
            f"| {found.tasks_per_s:,.0f} | {first} | {second} | {gone.whole_s:.1f} | {parts} |\n"
        )
    return text


def _percent(part: float) -> str:
    return f"{min(part, 1):.0%}" if part < 1.1 else f"{part:.1f} times too busy"


def small(given: argparse.Namespace, costs: Costs) -> str:
    """Compare with clusters that were measured: all on two processors."""
    text = "| on one machine of 2 processors | measured tasks/s | predicted | ratio |\n"
    text += "| --- | ---: | ---: | ---: |\n"
    for masters, workers in SMALL:
        file = given.engine if masters == 1 else given.two
        if not file.exists():
            continue
        cluster = Cluster(masters, workers, together=2)
        for line in json.loads(file.read_text(encoding="utf-8"))["lines"]:
            if line["workload"].startswith("WIDE") and line["database"] == "postgresql":
                measured = line["figures"]["tasks_per_s"]
                predicted = simulate(cluster, costs).tasks_per_s
                text += (
                    f"| {cluster.name}, {line['workload']} | {measured:,.0f} "
                    f"| {predicted:,.0f} | {predicted / measured:.2f} |\n"
                )
    return text


if __name__ == "__main__":
    main()
