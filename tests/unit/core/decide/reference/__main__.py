"""The long form: ``python -m tests.unit.core.decide.reference --cases 100000 --seed 1``."""

import argparse
import sys
import time

from tests.unit.core.decide.reference.campaign import Tally, run_cases
from tests.unit.core.decide.reference.coverage import all_corners

PORTION = 2_000  # cases between two lines of progress


def main() -> int:
    """Play the cases, print what came of them. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Compare decide with the reference model.")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    total = Tally()
    began = time.monotonic()
    for first in range(0, arguments.cases, PORTION):
        tally = run_cases(arguments.seed, first, min(PORTION, arguments.cases - first))
        total.add(tally)
        _say(f"{total.cases} cases, {len(total.failing)} differ")
        for line in tally.explain(arguments.seed):
            _say(line)
    report(total, arguments.seed, time.monotonic() - began)
    return 1 if total.failing or total.empty_corners else 0


def report(total: Tally, seed: int, seconds: float) -> None:
    """Print the figures and how many cases have been in each corner."""
    _say(f"\nseed {seed}: {total.cases} cases, {total.events} events in {seconds:.0f} s")
    _say(f"differences: {len(total.failing)}\n")
    for corner in all_corners():
        _say(f"{total.corners[corner]:8} cases: {corner}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
