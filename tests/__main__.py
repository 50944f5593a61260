"""``python -m tests``: run the suite, several pytest processes side by side.

Without arguments it runs what ``make test`` runs. Many tests wait for clusters, so two more
processes run than there are processors, and the longest part of the last run starts first. The
output of a part is shown when the part ends. The last line counts the tests: ``N passed, N failed,
N skipped``.

If only a few tests fail, each runs once more at the end, with nothing beside it. If it passes, it
counts as passed and is listed as unsteady: its verdict depends on time, and it needs a cure.
"""

import argparse
import compileall
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

from tests.support.runs import Part, Share, parts

ROOT = Path(__file__).parents[1]
#: Results of the last run: test reports, pytest caches, durations. Git ignores it.
KEPT = ROOT / "build" / "tests"
AT_ONCE = (os.cpu_count() or 1) + 2
_SLOWEST = ("--durations=10", "--durations-min=5")
_LEFT = re.compile("PytestUnraisable|PytestUnhandled")  # what another test may have left
_NO_TESTS = 5  # pytest's exit status when a selection by -k leaves nothing
_FAILED = 1  # pytest's exit status when tests failed and the run ended in order
#: Failed tests that run once more. More of them are a fault of the code or of the machine.
RUN_AGAIN = 5


@dataclass(frozen=True, slots=True)
class Result:
    """How one part ended; times in seconds, ``cpu_s`` with all processes its tests waited for."""

    part: str
    passed: int
    failed: int
    skipped: int
    wall_s: float
    cpu_s: float
    # Each failure is one of a test itself, so it may run again: not one of a fixture, nor of what
    # another test has left, which Python reports at whatever test runs then.
    is_complete: bool = False
    unsteady: Sequence[str] = ()  # tests that failed beside others and passed alone

    @property
    def is_clean(self) -> bool:
        """Whether no test failed."""
        return not self.failed

    @classmethod
    def read(cls, part: str, report: Path, status: int, wall_s: float, cpu_s: float) -> Self:
        """Read the JUnit report of a part that ended with ``status``.

        A part that ends badly without naming a test (an interrupt, an error of a plug-in) counts as
        one failure.
        """
        failed = errors = skipped = total = 0
        is_left = False
        if report.is_file():
            for suite in ElementTree.parse(report).getroot().iter("testsuite"):
                total += int(suite.get("tests", 0))
                errors += int(suite.get("errors", 0))
                failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
                skipped += int(suite.get("skipped", 0))
            is_left = bool(_LEFT.search(report.read_text(encoding="utf-8", errors="replace")))
        if status not in {0, _NO_TESTS}:
            failed = max(failed, 1)
        passed = max(total - failed - skipped, 0)
        is_complete = status in {0, _FAILED} and report.is_file() and not (errors or is_left)
        return cls(part, passed, failed, skipped, round(wall_s, 1), round(cpu_s, 1), is_complete)


def main(words: Sequence[str] | None = None) -> int:
    """Run the chosen parts; return 1 if a test failed."""
    options = _parser().parse_args(words)
    if options.total:
        return _total()
    chosen = _chosen(Share(options.share), options.part)
    if options.list:
        for part in chosen:
            _say(f"{part.name}  ({len(part.files)} files)")
        return 0
    KEPT.mkdir(parents=True, exist_ok=True)
    _compile()
    try:
        results = run_all(chosen, _pytest_options(options))
    except KeyboardInterrupt:
        return 130
    if options.coverage:
        _report_coverage()
    if not options.part:
        kept = json.dumps([asdict(result) for result in results], indent=1)
        (KEPT / f"{options.share}.json").write_text(kept, encoding="utf-8")
    summarise(results)
    return 0 if all(result.is_clean for result in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "part", nargs="*", help="run only parts whose name contains this text, for example sql"
    )
    parser.add_argument(
        "--share",
        choices=[*Share],
        default=Share.MAIN,
        help="quick, main (the default), rest (what make test-all adds) or all",
    )
    parser.add_argument("--list", action="store_true", help="print the parts and run nothing")
    parser.add_argument("--failed", action="store_true", help="run only the tests that failed last")
    parser.add_argument("-k", metavar="EXPRESSION", help="run only matching tests, as pytest's -k")
    parser.add_argument(
        "--coverage", action="store_true", help="report the lines that no test reaches"
    )
    parser.add_argument(
        "--total", action="store_true", help="print the sum of the last main and rest runs"
    )
    return parser


def _chosen(share: Share, names: Sequence[str]) -> list[Part]:
    """Return the parts whose name contains one of ``names``, the longest of the last run first."""
    chosen = [p for p in parts(share) if not names or any(name in p.name for name in names)]
    if not chosen:
        known = ", ".join(part.name for part in parts(share))
        raise SystemExit(f"no part of {share} matches {' '.join(names)}; parts: {known}")
    durations = {**_ASSUMED_S, **{result.part: result.wall_s for result in _last(share)}}
    return sorted(chosen, key=lambda part: -durations.get(part.name, 0.0))


#: Wall seconds of the longest parts, for a machine that has not run them yet.
_ASSUMED_S = {
    "acceptance, shared cluster": 900.0,
    "integration/worker, types": 600.0,
    "long forms": 500.0,
    "coordination, ensemble": 480.0,
    "second database": 450.0,
    "integration/worker, agent": 390.0,
    "integration/api": 360.0,
    "acceptance, own clusters": 330.0,
    "integration/coordination": 320.0,
    "integration/master": 310.0,
    "integration/alert": 190.0,
    "integration/client": 180.0,
    "integration/insight": 160.0,
    "integration/sql": 145.0,
    "unit, others": 130.0,
    "integration/drivers": 60.0,
    "unit/core": 40.0,
}


def _last(share: Share) -> list[Result]:
    """Return the results of the last whole run of ``share``; none if there was none."""
    try:
        kept = json.loads((KEPT / f"{share}.json").read_text(encoding="utf-8"))
        return [Result(**result) for result in kept]
    except (OSError, ValueError, TypeError):
        return []


def _compile() -> None:
    """Compile Shoal once for the thousand processes that the tests start.

    Python does not keep what it has compiled where PYTHONDONTWRITEBYTECODE is set.
    """
    for package in sorted(ROOT.glob("*/shoal")):
        compileall.compile_dir(package, quiet=1)


def _pytest_options(options: argparse.Namespace) -> list[str]:
    chosen = ["--last-failed", "--last-failed-no-failures", "none"] if options.failed else []
    if options.k:
        chosen += ["-k", options.k]
    if options.coverage:
        chosen += ["--cov", "--cov-report="]
    return chosen


def run_all(chosen: Sequence[Part], options: Sequence[str], kept: Path = KEPT) -> list[Result]:
    """Run the parts and show the output of each; return their results in the order given.

    A few tests that fail are run again. ``kept``: the folder for reports and caches.
    """
    results = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {pool.submit(_run, part, options, kept): part.name for part in chosen}
        _say(f"==> {len(runs)} parts, {AT_ONCE} at a time; each is shown when it ends")
        try:
            for run in as_completed(runs):
                result, output = run.result()
                _say(f"==> {result.part}\n{output}==> {result.cpu_s:.0f} CPU seconds")
                results[result.part] = result
        except KeyboardInterrupt:  # the parts have been interrupted as well, and clean up
            pool.shutdown(cancel_futures=True)
            raise
    if 0 < sum(result.failed for result in results.values()) <= RUN_AGAIN:
        for part in chosen:
            if results[part.name].failed and results[part.name].is_complete:
                results[part.name] = _run_again(part, results[part.name], options, kept)
    return [results[part.name] for part in chosen]


def _run_again(part: Part, first: Result, options: Sequence[str], kept: Path) -> Result:
    """Run the tests of a part that failed once more; return its result with what they are now."""
    if not (failed := _last_failed(part, kept)):
        return first
    second, output = _run(part, [*options, "--last-failed"], kept, "again")
    _say(f"==> {part.name}, failed tests once more\n{output}")
    unsteady = sorted(failed - _last_failed(part, kept))
    if not second.is_complete or second.passed != len(unsteady):
        return first  # some of them were skipped, or could not even be collected
    passed = first.passed + second.passed
    return replace(first, passed=passed, failed=second.failed, unsteady=unsteady)


def _last_failed(part: Part, kept: Path) -> set[str]:
    """Return the tests in pytest's record of failures, as pytest takes them for arguments."""
    record = _folder(part, kept) / "cache" / "v" / "cache" / "lastfailed"
    return {*json.loads(record.read_text(encoding="utf-8"))} if record.is_file() else set()


def _folder(part: Part, kept: Path) -> Path:
    return kept / re.sub(r"\W+", "-", part.name)


def _run(
    part: Part, options: Sequence[str], kept: Path, name: str = "report"
) -> tuple[Result, str]:
    """Run one part; return its result and what it printed. ``name``: of the JUnit report."""
    own = _folder(part, kept)
    own.mkdir(exist_ok=True)
    report, printed = own / f"{name}.xml", own / f"{name}.txt"
    report.unlink(missing_ok=True)
    started = time.monotonic()
    # A file instead of a pipe: a process that a test left behind would keep a pipe open.
    with printed.open("wb") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", *_SLOWEST, f"--junit-xml={report}"),
                *("-o", f"cache_dir={own / 'cache'}", *options, *map(str, part.files)),
            ],
            cwd=ROOT,
            env={**os.environ, **part.variables, "COVERAGE_FILE": str(own / f"coverage-{name}")},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        _, ended, used = os.wait4(process.pid, 0)
    status = process.returncode = os.waitstatus_to_exitcode(ended)
    wall_s, cpu_s = time.monotonic() - started, used.ru_utime + used.ru_stime
    result = Result.read(part.name, report, status, wall_s, cpu_s)
    return result, printed.read_text(errors="replace")


def summarise(results: Iterable[Result]) -> None:
    """Print a line for each part and, as the last line, the number of tests."""
    results = sorted(results, key=lambda result: -result.cpu_s)
    _say(f"\n{'part':30} {'passed':>7} {'failed':>7} {'skipped':>8} {'wall s':>7} {'CPU s':>7}")
    for r in results:
        _say(f"{r.part:30} {r.passed:7} {r.failed:7} {r.skipped:8} {r.wall_s:7.0f} {r.cpu_s:7.0f}")
    _say(f"{'':30} {'':7} {'':7} {'':8} {'':7} {sum(r.cpu_s for r in results):7.0f}")
    passed, failed, skipped = (
        sum(getattr(result, name) for result in results) for name in ("passed", "failed", "skipped")
    )
    if unsteady := ", ".join(test for result in results for test in result.unsteady):
        _say(f"unsteady (failed beside others, passed alone): {unsteady}")
    _say(f"{passed} passed, {failed} failed, {skipped} skipped")


def _total() -> int:
    """Print the summary of the last whole runs of main and rest; return 1 if one is missing."""
    found = [_last(share) for share in (Share.MAIN, Share.REST)]
    summarise([result for results in found for result in results])
    return 0 if all(found) and all(r.is_clean for results in found for r in results) else 1


def _report_coverage() -> None:
    tool = [sys.executable, "-m", "coverage"]
    data = sorted(KEPT.glob("*/coverage*"))
    subprocess.run([*tool, "combine", "--quiet", *data], cwd=ROOT, check=False)
    subprocess.run([*tool, "report"], cwd=ROOT, check=False)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
