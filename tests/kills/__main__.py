"""``python -m tests.kills``: kill around submissions, print a report, exit 0 if it is clean.

The environment gives defaults: ``CASES`` of each kind, ``SEED``, ``TYPES`` (by comma).
"""

import argparse
import asyncio
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from pathlib import Path

import structlog

from tests.chaos.cluster.cluster import Cluster, Shape
from tests.chaos.workload.rest import Api
from tests.kills.conduct import Conductor, Result
from tests.kills.judging import GRACE_S
from tests.kills.killing import Killer
from tests.kills.kinds.catalogue import KINDS
from tests.kills.kinds.sources import put_source
from tests.kills.plan import Case, draw
from tests.kills.report import render
from tests.kills.rows import Rows
from tests.kills.sides.local import LocalSide
from tests.kills.sides.side import Watch
from tests.support.database.mariadb import MariadbMissing
from tests.support.database.postgresql import PostgresqlMissing
from tests.support.interrupts import guarded
from tests.support.waiting import START_S

EXIT_CLEAN, EXIT_OFFENCES, EXIT_USAGE, EXIT_NO_SERVER, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
_LOOPBACK = "cases need servers of their own on the loopback"


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    env = os.environ.get
    parser.add_argument("--cases", type=int, default=int(env("CASES") or 100), help="of each kind")
    parser.add_argument("--seed", type=int, default=int(env("SEED") or 0), help="0: a new one")
    parser.add_argument("--types", default=env("TYPES") or "", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--only", default="", help="cases such as SSH:17, by comma")
    parser.add_argument("--together", type=int, default=8, help="how many cases run side by side")
    parser.add_argument("--session-timeout", type=float, default=4.0)
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    parser.add_argument(
        "--results",
        type=Path,
        help="file of results, which a run that was ended goes on from (build/kills-SEED.jsonl)",
    )
    parser.add_argument("--report", action="store_true", help="only show the results")
    return parser.parse_args(given)


def say(text: str) -> None:
    """Write a line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def planned(options: argparse.Namespace, seed: int) -> dict[str, list[Case]]:
    """Return the cases of each kind. Raises ValueError: no such kind or case."""
    wanted: dict[str, set[int]] = {}
    for one in filter(None, options.only.split(",")):
        kind, _, number = one.partition(":")
        wanted.setdefault(kind, set()).add(int(number))
    names = list(wanted) or list(filter(None, options.types.split(","))) or list(KINDS)
    if unknown := [name for name in names if name not in KINDS]:
        raise ValueError(f"no such kinds: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    plan = {}
    for name in names:
        numbers = wanted.get(name)
        cases = draw(seed, name, max(numbers) + 1 if numbers else options.cases)
        plan[name] = [case for case in cases if numbers is None or case.number in numbers]
    return plan


async def conduct(
    options: argparse.Namespace, plan: dict[str, list[Case]], folder: Path, results: Path
) -> None:
    """Carry all cases out, kind by kind, and store each result. Each kind has a new cluster."""
    for name, cases in plan.items():
        place = folder / name.lower()
        place.mkdir()
        async with AsyncExitStack() as stack:
            local, kind = LocalSide(), KINDS[name]()
            watch = stack.enter_context(Watch(local))
            # Before the cluster, whose connections go through this event loop.
            await kind.open(stack, place / "servers", watch)
            cluster = await stack.enter_async_context(Cluster(place, _shape(options)))
            say(f"{name}: cluster is up in {place}")
            api = await stack.enter_async_context(Api(cluster.url, cluster.token))
            rows = await stack.enter_async_context(Rows(cluster.database.url))
            async with asyncio.timeout(START_S):
                for source in kind.sources():
                    await put_source(api, source)
            conductor = Conductor(cluster, api, rows, Killer(cluster, local), kind)
            # First those that hurt nobody else, so that the time they take is their own.
            for hurts in (False, True):
                some = [case for case in cases if case.target.hurts_others is hurts]
                await _side_by_side(conductor, some, options.together, results)
            for each in kind.watches:
                say(
                    f"{name}: {each.looks} looks at {each.name}, {each.failed} failed, "
                    f"at most {each.longest_s:.2f} s apart {each.trouble}"
                )


def _shape(options: argparse.Namespace) -> Shape:
    settings = ("http_allow=127.0.0.0/8", "slots=8", f"kill_grace_s={GRACE_S:g}")
    return Shape(
        options.session_timeout,
        masters=2,
        workers=2,
        network_refused=_LOOPBACK,
        small_disk=False,
        worker_settings=settings,
    )


async def _side_by_side(
    conductor: Conductor, cases: list[Case], together: int, results: Path
) -> None:
    waiting = list(reversed(cases))

    async def work() -> None:
        while waiting:
            case = waiting.pop()
            result = await conductor.run(case)
            with results.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
            told = "; ".join(result.offences) or "ok"
            say(
                f"{time.strftime('%H:%M:%S')} {case.id} {case.target} {case.phase} "
                f"({result.killed or 'too late'}): {result.state}, "
                f"{len(result.attempts)} attempts, {result.took_s:g} s: {told}"
            )

    async with asyncio.TaskGroup() as group:
        for _ in range(together):
            group.create_task(work())


def load(path: Path) -> list[Result]:
    """Return the results in a file, the latest of each case."""
    found: dict[tuple[str, int], Result] = {}
    if path.exists():
        for line in path.read_text().splitlines():
            with suppress(ValueError):  # a line that was cut off
                result = Result(**json.loads(line))
                found[result.kind, result.number] = result
    return [found[key] for key in sorted(found)]


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    seed = options.seed or random.SystemRandom().randrange(1, 10**6)
    try:
        plan = planned(options, seed)
    except ValueError as error:
        say(str(error))
        return EXIT_USAGE
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    results: Path = options.results or Path("build", f"kills-{seed}.jsonl")
    results.parent.mkdir(parents=True, exist_ok=True)
    if not options.report:
        done = {(one.kind, one.number) for one in load(results)} if not options.only else set()
        plan = {
            name: left
            for name, cases in plan.items()
            if (left := [case for case in cases if (name, case.number) not in done])
        }
        say(f"SEED={seed}; results are in {results}")
        folder = Path(tempfile.mkdtemp(prefix="shoal-kills-"))
        try:
            asyncio.run(guarded(conduct(options, plan, folder, results)))
        except (PostgresqlMissing, MariadbMissing) as error:
            say(str(error))
            return EXIT_NO_SERVER
        except asyncio.CancelledError:
            say("interrupted")
            return EXIT_INTERRUPTED
        finally:
            found = load(results)
            if options.keep or any(one.offences for one in found):
                say(f"everything is kept in {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
    found = load(results)
    say(render(found, {name: kind.label for name, kind in KINDS.items()}))
    return EXIT_OFFENCES if any(one.offences for one in found) else EXIT_CLEAN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
