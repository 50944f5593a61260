"""Run tests against copies of the tree: first as it is, then with one mutation each."""

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.mutations import tree, verdict, witness
from tests.mutations.mutation import Mutation
from tests.mutations.patience import LADDER, Patience, longer
from tests.mutations.verdict import Outcome, Verdict
from tests.support import waiting

BASELINE_LIMIT_S = 900.0
_SLOWER = 10.0  # times as long as without a mutation may its tests take
TAIL = 3000  # characters of pytest's output that are shown when it went wrong


@dataclass(frozen=True)
class Result:
    """What became of one mutation. ``output`` is the end of what pytest printed."""

    mutation: Mutation
    verdict: Verdict
    why: str
    took_s: float
    output: str


@dataclass(frozen=True)
class Baseline:
    """Tests without any mutation: the patience of those that passed, and why others did not."""

    patience: dict[str, Patience]
    failed: dict[str, str]  # skipped and missing tests, too: all of them prove nothing

    def results(self, mutations: Iterable[Mutation]) -> Iterator[Result]:
        """Return the results of the mutations that some failed test makes impossible to judge."""
        for each in mutations:
            if whys := [self.failed[killer] for killer in each.killers if killer in self.failed]:
                yield Result(each, Verdict.UNPROVEN, "without the mutation: " + whys[0], 0.0, "")


@dataclass(frozen=True)
class _Run:
    status: int
    outcomes: list[Outcome]
    output: str


async def baseline(base: Path, mutations: Iterable[Mutation], jobs: int) -> Baseline:
    """Run the killers in ``base`` without any mutation, and find out how patient each has to be."""
    free = asyncio.Semaphore(jobs)
    trying = {killer: LADDER[0] for each in mutations for killer in each.killers}
    result = Baseline({}, {})

    async def run(number: int, share: Sequence[str], deadline_s: float) -> _Run:
        async with free:
            return await _pytest(
                base, f"baseline-{number}", share, BASELINE_LIMIT_S, deadline_s, compiled=True
            )

    while trying:
        shares = _shares(trying, jobs)
        runs = [run(number, *share) for number, share in enumerate(shares)]
        trying = {}
        for (share, deadline_s), ended in zip(shares, await asyncio.gather(*runs), strict=True):
            bad = _bad(share, ended)
            for killer in share:
                failed = verdict.failed(killer, ended.outcomes)
                if killer in bad and not (failed and deadline_s < LADDER[-1]):
                    result.failed[killer] = bad[killer]
                    continue
                took_s = None if failed else verdict.took_s(killer, ended.outcomes)
                longer_s = longer(deadline_s, took_s)
                if longer_s is not None:
                    trying[killer] = longer_s
                else:
                    assert took_s is not None
                    result.patience[killer] = Patience(deadline_s, took_s)
    return result


def _bad(share: Sequence[str], run: _Run) -> dict[str, str]:
    """Return the killers that did not pass, with the reason: all if pytest itself failed."""
    bad = verdict.not_passed(share, run.outcomes)
    if run.status != 0 and not bad:
        return dict.fromkeys(share, f"pytest ended with status {run.status}: {run.output}")
    return bad


def _shares(deadlines: Mapping[str, float], jobs: int) -> list[tuple[list[str], float]]:
    """Divide killers into test runs: one deadline each, whole files, about as many as ``jobs``."""
    shares: dict[tuple[float, int], list[str]] = {}
    files: dict[str, int] = {}
    for killer in sorted(deadlines):
        number = files.setdefault(killer.partition("::")[0], len(files))
        shares.setdefault((deadlines[killer], number % jobs), []).append(killer)
    return [(killers, deadline_s) for (deadline_s, _), killers in shares.items()]


async def run_all(
    base: Path,
    lanes: Path,
    mutations: Sequence[Mutation],
    jobs: int,
    on_result: Callable[[Result], None],
    patience: Mapping[str, Patience],
) -> list[Result]:
    """Run every mutation in a copy of ``base`` below ``lanes``, ``jobs`` of them at a time.

    Those that may take longest come first. ``patience`` is that of every killer.
    """
    free = asyncio.Semaphore(jobs)

    def deadline_s(mutation: Mutation) -> float:
        return max(patience[killer].deadline_s for killer in mutation.killers)

    def limit_s(mutation: Mutation) -> float:
        # A busy machine makes tests slow, and that is no hang.
        took_s = sum(patience[killer].took_s for killer in mutation.killers)
        return max(mutation.limit_s, _SLOWER * took_s)

    async def one(number: int, mutation: Mutation) -> Result:
        killers = sorted(mutation.killers, key=lambda killer: patience[killer].took_s)
        async with free, _lane(base, lanes / str(number)) as lane:
            mutation.apply(lane)
            began = time.monotonic()
            run = await _pytest(lane, "mutated", killers, limit_s(mutation), deadline_s(mutation))
            judged, why = verdict.judge(run.status, run.outcomes)
            took_s = time.monotonic() - began
        result = Result(mutation, judged, why, took_s, run.output)
        on_result(result)
        return result

    longest_first = sorted(enumerate(mutations), key=lambda each: -deadline_s(each[1]))
    async with asyncio.TaskGroup() as group:
        tasks = {number: group.create_task(one(number, each)) for number, each in longest_first}
    return [tasks[number].result() for number in range(len(mutations))]


@asynccontextmanager
async def _lane(base: Path, lane: Path) -> AsyncIterator[Path]:
    await asyncio.to_thread(tree.copy_tree, base, lane)
    try:
        yield lane
    finally:
        await asyncio.to_thread(shutil.rmtree, lane, ignore_errors=True)


async def _pytest(
    root: Path,
    name: str,
    tests: Sequence[str],
    limit_s: float,
    deadline_s: float,
    *,
    compiled: bool = False,
) -> _Run:
    """Run ``tests`` in ``root``; without mutations all of them, otherwise up to the first failure.

    ``deadline_s``: of what the tests wait for. ``compiled``: leave compiled modules for the
    copies.
    """
    report, scratch = root / f"{name}.json", root / f"{name}-tmp"
    report.unlink(missing_ok=True)
    settings = [
        f"PYTHONPATH={tree.python_path(root)}",
        f"{witness.VARIABLE}={report}",
        f"{waiting.VARIABLE}={deadline_s:g}",
    ]
    options = ["-q", "--timeout=0", f"--basetemp={scratch}", "-p", "no:cacheprovider"]
    # Empty is "no": the variable may be set around us, and without compiled modules each of the
    # copies compiles all of Shoal.
    settings.append(f"PYTHONDONTWRITEBYTECODE={'' if compiled else '1'}")
    options.append("--continue-on-collection-errors" if compiled else "-x")
    pytest = [sys.executable, "-m", "pytest", *options, "-p", "tests.mutations.witness", *tests]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.mutations.contained", str(limit_s)),
        *("env", "-C", str(root), *settings, *pytest),
        cwd=tree.ROOT,
        env=tree.inherited(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    finally:
        # Servers' data: nothing that a copy of the tree should have.
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)
    assert process.returncode is not None
    said = output.decode(errors="replace")[-TAIL:]
    return _Run(process.returncode, verdict.read(report), said)
