"""Run the histories of some seeds: ``python -m tests.support.simulation KINDS FIRST COUNT``.

With ``PYTHONHASHSEED=0`` a seed has the same history each time. Prints the number of steps and of
each fault as JSON. A history that fails ends it, with its seed in the traceback.
"""

import json
import sys
from collections import Counter

from tests.support.simulation.history import History
from tests.support.simulation.zookeeper import simulated_sessions


def main(kinds: str, first: int, count: int) -> None:
    faults: Counter[str] = Counter()
    steps = 0
    with simulated_sessions():
        for seed in range(first, first + count):
            history = History(seed, kinds).run()
            faults += history.faults
            steps += history.world.steps
    sys.stdout.write(json.dumps({"steps": steps, "faults": faults}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
