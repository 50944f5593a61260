"""``python -m tests``: the whole suite, in two runs of pytest side by side, with coverage of both.

Acceptance tests mostly wait for clusters of their own, so they take no longer beside the others.
The output of the second run is shown when it is over. Ends with 1 if one of them fails.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
BESIDE = "acceptance"
RUNS = {
    "others": ["tests/unit", "tests/integration"],
    BESIDE: ["tests/acceptance"],
}


def main() -> int:
    """Run everything and print the coverage of all together."""
    data = {name: ROOT / f".coverage.{name}" for name in RUNS}
    with tempfile.TemporaryFile() as output:
        runs = {
            name: _start(paths, data[name], output if name == BESIDE else None)
            for name, paths in RUNS.items()
        }
        try:
            codes = [run.wait() for run in runs.values()]
        except KeyboardInterrupt:
            for run in runs.values():  # they have been interrupted as well, and clean up
                run.wait()
            return 130
        output.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(output.read())
        sys.stdout.flush()
    _report([path for path in data.values() if path.exists()])
    return 1 if any(codes) else 0


def _start(paths: list[str], data: Path, output: IO[bytes] | None) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "pytest", "--cov", "--cov-report=", *paths]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "COVERAGE_FILE": str(data)},
        stdout=output,
        stderr=subprocess.STDOUT,
    )


def _report(data: list[Path]) -> None:
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "combine", "--quiet", *data], cwd=ROOT, check=False)
    subprocess.run([*coverage, "report"], cwd=ROOT, check=False)


if __name__ == "__main__":
    sys.exit(main())
