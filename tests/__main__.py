"""``python -m tests``: the whole suite, several runs of pytest side by side.

Many tests wait for clusters of their own, so there is one run more than there are processors. What
a run says is shown when it is over, with its slowest tests and the processor time that it took.
Ends with 1 if one of them fails.
"""

import argparse
import compileall
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.support.runs import parts

ROOT = Path(__file__).parents[1]
AT_ONCE = (os.cpu_count() or 1) + 1
_SLOWEST = ("--durations=10", "--durations-min=5")


def main() -> int:
    """Run everything, and say what failed."""
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument(
        "--coverage",
        action="store_true",
        help="say in the end which lines no test has reached; the tests take twice as long",
    )
    coverage: bool = parser.parse_args().coverage
    _compile()
    with tempfile.TemporaryDirectory(prefix="shoal-tests-") as folder:
        try:
            failed = _run_all(Path(folder), coverage)
        except KeyboardInterrupt:
            return 130
        if coverage:
            _report(sorted(Path(folder).glob("*.coverage")))
    _say(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


def _compile() -> None:
    """Compile Shoal, which each of some thousand processes would do for itself.

    Python does not keep what it has compiled where PYTHONDONTWRITEBYTECODE is set.
    """
    for package in sorted(ROOT.glob("*/shoal")):
        compileall.compile_dir(package, quiet=1)


def _run_all(folder: Path, coverage: bool) -> list[str]:
    """Run all parts and show what each says; return the names of those that failed."""
    failed = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {
            pool.submit(_run, paths, folder / str(number), coverage): name
            for number, (name, paths) in enumerate(parts().items())
        }
        _say(f"{len(runs)} runs of pytest, {AT_ONCE} at a time; each is shown when it is over")
        try:
            for run in as_completed(runs):
                code, output = run.result()
                _say(f"{runs[run]}\n{output}")
                if code:
                    failed.append(runs[run])
        except KeyboardInterrupt:  # the runs have been interrupted as well, and clean up
            pool.shutdown(cancel_futures=True)
            raise
    return failed


def _run(paths: list[Path], output: Path, coverage: bool) -> tuple[int, str]:
    """Return how a run of pytest ended and what it said; ``output`` is where it may write."""
    options = ["--cov", "--cov-report="] if coverage else []
    # A file and not a pipe, which whatever a test left behind would keep open.
    with output.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *_SLOWEST, *options, *paths],
            cwd=ROOT,
            env={**os.environ, "COVERAGE_FILE": f"{output}.coverage"},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s = used.ru_utime + used.ru_stime  # with that of all that its tests have waited for
    said = output.read_text(errors="replace")
    return process.returncode, f"{said}==> {cpu_s:.0f} s of processor time"


def _say(text: str) -> None:
    sys.stdout.write(f"==> {text}\n")
    sys.stdout.flush()


def _report(data: list[Path]) -> None:
    tool = [sys.executable, "-m", "coverage"]
    subprocess.run([*tool, "combine", "--quiet", *data], cwd=ROOT, check=False)
    subprocess.run([*tool, "report"], cwd=ROOT, check=False)


if __name__ == "__main__":
    sys.exit(main())
