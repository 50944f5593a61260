"""Run tests against copies of the tree: first as it is, then with one mutation each."""

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.mutations import tree, verdict
from tests.mutations.mutation import Mutation
from tests.mutations.verdict import Outcome, Verdict
from tests.mutations.witness import VARIABLE

BASELINE_LIMIT_S = 900.0
TAIL = 3000  # characters of pytest's output that are shown when it went wrong


class BaselineFailed(Exception):
    """Tests fail, are skipped or do not exist without any mutation: they can prove nothing."""


@dataclass(frozen=True)
class Result:
    """What became of one mutation. ``output`` is the end of what pytest printed."""

    mutation: Mutation
    verdict: Verdict
    why: str
    took_s: float
    output: str


@dataclass(frozen=True)
class _Run:
    status: int
    outcomes: list[Outcome]
    output: str


async def baseline(base: Path, mutations: Iterable[Mutation], jobs: int) -> None:
    """Check in ``base`` that every killer passes. Raises BaselineFailed."""
    killers = sorted({killer for each in mutations for killer in each.killers})
    files = sorted({killer.partition("::")[0] for killer in killers})
    shares = [[k for k in killers if files.index(k.partition("::")[0]) % jobs == job]
              for job in range(jobs)]  # fmt: skip
    shares = [share for share in shares if share]
    runs = [
        _pytest(base, f"baseline-{number}", share, BASELINE_LIMIT_S, compiled=True)
        for number, share in enumerate(shares)
    ]
    bad = []
    for share, run in zip(shares, await asyncio.gather(*runs), strict=True):
        wrong = verdict.not_passed(share, run.outcomes)
        bad += wrong
        if wrong or run.status != 0:
            bad.append(f"pytest ended with status {run.status}; it printed:\n{run.output}")
    if bad:
        raise BaselineFailed("without any mutation:\n" + "\n".join(bad))


async def run_all(
    base: Path,
    lanes: Path,
    mutations: Sequence[Mutation],
    jobs: int,
    on_result: Callable[[Result], None],
) -> list[Result]:
    """Run every mutation in a copy of ``base`` below ``lanes``, ``jobs`` of them at a time."""
    free = asyncio.Semaphore(jobs)

    async def one(number: int, mutation: Mutation) -> Result:
        async with free, _lane(base, lanes / str(number)) as lane:
            mutation.apply(lane)
            began = time.monotonic()
            run = await _pytest(lane, "mutated", mutation.killers, mutation.limit_s)
            judged, why = verdict.judge(run.status, run.outcomes)
            took_s = time.monotonic() - began
        result = Result(mutation, judged, why, took_s, run.output)
        on_result(result)
        return result

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(*each)) for each in enumerate(mutations)]
    return [task.result() for task in tasks]


@asynccontextmanager
async def _lane(base: Path, lane: Path) -> AsyncIterator[Path]:
    await asyncio.to_thread(tree.copy_tree, base, lane)
    try:
        yield lane
    finally:
        await asyncio.to_thread(shutil.rmtree, lane, ignore_errors=True)


async def _pytest(
    root: Path, name: str, tests: Sequence[str], limit_s: float, *, compiled: bool = False
) -> _Run:
    """Run ``tests`` in ``root``; without mutations all of them, otherwise up to the first failure.

    ``compiled``: leave compiled modules for the copies.
    """
    report, scratch = root / f"{name}.json", root / f"{name}-tmp"
    settings = [f"PYTHONPATH={tree.python_path(root)}", f"{VARIABLE}={report}"]
    options = ["-q", "--timeout=0", f"--basetemp={scratch}", "-p", "no:cacheprovider"]
    if not compiled:
        settings.append("PYTHONDONTWRITEBYTECODE=1")
        options.append("-x")
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
    assert process.returncode is not None
    said = output.decode(errors="replace")[-TAIL:]
    return _Run(process.returncode, verdict.read(report), said)
