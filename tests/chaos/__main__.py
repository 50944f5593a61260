"""``python -m tests.chaos``: run the fault suite, print its report, exit 0 if it is clean.

The environment gives defaults: ``FAULTS`` (without: each kind), ``SEED``, ``SESSION_TIMEOUT`` (s),
``DATABASE`` (postgresql or sqlite).
"""

import argparse
import asyncio
import logging
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TextIO

import structlog

from tests.chaos.cluster.cluster import DATABASES, POSTGRESQL, SQLITE, Cluster, Shape
from tests.chaos.cluster.sandbox import Refused, make_mounts_private, make_network_private
from tests.chaos.faults.catalogue import Maker, chosen
from tests.chaos.judging import audit
from tests.chaos.judging.checker import check
from tests.chaos.judging.logs import ApiLogs, ArchivedLogs
from tests.chaos.judging.verdict import Verdict
from tests.chaos.plan import Episode, Outcome, carry_out, draw
from tests.chaos.reports.parts import Part, Result, load, merge, shared, split, store
from tests.chaos.reports.report import RunInfo, commit, render
from tests.chaos.stalls import StallWatch
from tests.chaos.workload import ledger
from tests.chaos.workload.rest import Api
from tests.chaos.workload.workload import Workload
from tests.support.database.postgresql import PostgresqlMissing
from tests.support.interrupts import guarded

EXIT_CLEAN, EXIT_OFFENCES, EXIT_USAGE, EXIT_NO_POSTGRESQL, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
EXIT_UNPROVEN = 4  # nothing wrong, but faults were skipped or had no effect, or a target was missed
_DRAIN_S = 300.0
_ARCHIVED_WITHIN_S = 120.0  # after the last end; a worker that has failed pauses up to 30 s


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    env = os.environ.get
    parser.add_argument("--faults", type=int, default=int(env("FAULTS") or 0), help="0: each kind")
    parser.add_argument("--seed", type=int, default=int(env("SEED") or 0), help="0: a new one")
    parser.add_argument("--session-timeout", type=float, default=env("SESSION_TIMEOUT") or 4.0)
    parser.add_argument("--rate", type=float, default=0.7, help="new instances a second")
    parser.add_argument("--only", default="", help="names of faults or their beginnings, by comma")
    parser.add_argument("--database", choices=DATABASES, default=env("DATABASE") or POSTGRESQL)
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    parser.add_argument("--report", type=Path, help="write the report to this file, too")
    parser.add_argument(
        "--parts",
        type=Path,
        help="folder for the results of a long run's parts, which is resumed there"
        " (default: build/chaos-SEED)",
    )
    parser.add_argument("--list", action="store_true", help="name all faults and exit")
    parsed = parser.parse_args(given)
    if parsed.database not in DATABASES:  # a default from the environment is not checked
        parser.error(f"invalid database {parsed.database!r}: use {' or '.join(DATABASES)}")
    return parsed


def tell(text: str) -> None:
    """Print a line of progress."""
    say(f"{time.strftime('%H:%M:%S')} {text}")


def say(text: str, stream: TextIO = sys.stdout) -> None:
    """Write a line, at once."""
    stream.write(text + "\n")
    stream.flush()


async def run(
    shape: Shape, seed: int, rate: float, episodes: Sequence[Episode], folder: Path
) -> Result:
    """Run the whole suite once, with ``rate`` new instances a second."""
    ledgers = folder / "ledger"
    marker = f"chaos-{os.getpid()}-{seed}"
    async with AsyncExitStack() as stack:
        stalls = stack.enter_context(StallWatch(shape.session_timeout_s))
        cluster = await stack.enter_async_context(Cluster(folder, shape))
        tell(f"cluster is up in {folder}" + (f" ({why})" if (why := cluster.disk_refused) else ""))
        await asyncio.to_thread(audit.install, cluster.database.url)
        api = await stack.enter_async_context(Api(cluster.url, cluster.token))
        workload = Workload(api, seed=seed, ledger=ledgers, rate=rate, marker=marker)
        stack.push_async_callback(workload.abandon)
        cluster.site = workload.site
        await workload.start(cluster.sink.url)
        outcome = await carry_out(cluster, episodes, tell)
        tell("faults are over, waiting for all instances to end")
        await workload.stop()
        left = await workload.drained(_DRAIN_S)
        tell("checking")
        outcome.records += stalls.records
        verdict = await asyncio.to_thread(judge, cluster, workload, outcome, ledgers, marker)
        result = Result(verdict, outcome, open_instances=left)
        result.session_timeout_s = shape.session_timeout_s
        result.exits = [text for role in cluster.roles for text in role.exits]
        await cluster.stop_roles()
        result.leftovers = cluster.leftovers
    return result


def judge(
    cluster: Cluster, workload: Workload, outcome: Outcome, ledgers: Path, marker: str
) -> Verdict:
    """Let the checker look at everything, while the cluster is up but at rest."""
    logs = ApiLogs(cluster.url, cluster.token)
    try:
        return check(
            cluster.database.url,
            ledger.read(ledgers),
            logs,
            outcome.records,
            asked=workload.asked,
            edits=workload.edits,
            resources=cluster.data / "resources",
            archived=ArchivedLogs(cluster.archive, _ARCHIVED_WITHIN_S),
            marker=marker,
            zookeeper=cluster.ensemble.hosts,
            told=cluster.sink.received,
            session_timeout_s=cluster.timeout_s,
        )
    finally:
        logs.close()


def isolate() -> tuple[str, str]:
    """Take mounts and a network of our own; return why either is not, "" if it is."""
    return _refused(make_mounts_private), _refused(make_network_private)


def _refused(isolation: Callable[[], None]) -> str:
    try:
        isolation()
    except Refused as error:
        return str(error)
    return ""


def conduct(options: argparse.Namespace, seed: int, makers: Mapping[str, Maker]) -> int:
    """Run the suite, in parts if it is long; write the report; return the exit status."""
    mounts_refused, network_refused = isolate()
    shape = Shape(
        options.session_timeout,
        options.database,
        network_refused=network_refused,
        # Over the machine's own file of hosts nothing may be mounted.
        names_refused=mounts_refused,
    )
    parts = split(seed, options.faults)
    if len(parts) == 1:
        results = [_result(options, shape, makers, parts[0], results=None)]
    else:
        folder = options.parts or Path("build", f"chaos-{seed}")
        tell(f"{len(parts)} parts; SEED={seed} begins again after those in {folder}")
        results = shared(parts, folder, partial(_result, options, shape, makers, results=folder))
    whole = merge(results)
    command = f"make chaos FAULTS={options.faults} SEED={seed}"
    if options.database == SQLITE:
        command += f" DATABASE={SQLITE}"
    info = RunInfo(seed, whole.duration_s, shape.session_timeout_s, whole.commit, command)
    report = render(whole, info)
    say(report)
    if options.report:
        options.report.write_text(report)
    if whole.is_clean:
        return EXIT_CLEAN
    return EXIT_UNPROVEN if whole.is_sound else EXIT_OFFENCES


def _verdict(result: Result) -> str:
    if result.is_clean:
        return "clean"
    return "nothing wrong, but not all was tried and met" if result.is_sound else "OFFENCES"


def _result(
    options: argparse.Namespace,
    shape: Shape,
    makers: Mapping[str, Maker],
    part: Part,
    *,
    results: Path | None,
) -> Result:
    """Return what is stored about a part, or run it.

    The folder with its logs stays if that was asked for, and if it could tell more than the report.
    """
    if results is not None and (done := load(part.file(results))):
        tell(f"part {part.number}: {_verdict(done)}, from before")
        return done
    folder = Path(tempfile.mkdtemp(prefix="shoal-chaos-"))
    tell(f"FAULTS={part.faults} SEED={part.seed} in {folder}")
    begun = time.monotonic()
    keep = True
    try:
        episodes = draw(part.seed, part.faults, makers)
        result = asyncio.run(guarded(run(shape, part.seed, options.rate, episodes, folder)))
        keep = options.keep or not result.is_sound
    except (PostgresqlMissing, asyncio.CancelledError):
        keep = options.keep
        raise
    finally:
        if keep:
            tell(f"everything is kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    result.duration_s, result.commit = time.monotonic() - begun, commit()
    if results is not None:
        store(part.file(results), result)
        tell(f"part {part.number}: {_verdict(result)}")
    return result


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    seed = options.seed or random.SystemRandom().randrange(1, 10**6)
    try:
        makers = chosen(options.only, options.database)
    except ValueError as error:
        say(str(error), sys.stderr)
        return EXIT_USAGE
    options.faults = options.faults or len(makers)
    if options.list:
        say("\n".join(makers))
        return EXIT_CLEAN
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    try:
        return conduct(options, seed, makers)
    except PostgresqlMissing as error:
        say(str(error), sys.stderr)
        return EXIT_NO_POSTGRESQL
    except asyncio.CancelledError:
        tell("interrupted")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
