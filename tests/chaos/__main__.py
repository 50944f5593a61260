"""``python -m tests.chaos``: run the fault suite, print its report, exit 0 if it is clean.

The environment gives defaults: ``FAULTS``, ``SEED``, ``SESSION_TIMEOUT`` (s).
"""

import argparse
import asyncio
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import structlog

from tests.chaos import audit, ledger
from tests.chaos.checker import check
from tests.chaos.cluster import Cluster, Shape
from tests.chaos.faults.catalogue import chosen
from tests.chaos.logs import ApiLogs
from tests.chaos.plan import Episode, Outcome, carry_out, draw
from tests.chaos.report import RunInfo, render
from tests.chaos.rest import Api
from tests.chaos.sandbox import Refused, make_mounts_private, make_network_private
from tests.chaos.stalls import StallWatch
from tests.chaos.verdict import Verdict
from tests.chaos.workload import Workload
from tests.postgresql import PostgresqlMissing

EXIT_CLEAN, EXIT_OFFENCES, EXIT_USAGE, EXIT_NO_POSTGRESQL, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
FAULTS = 45  # by default: every kind once, in some ten minutes on two cores
_DRAIN_S = 300.0


@dataclass
class Result:
    """Everything one run has found."""

    verdict: Verdict
    outcome: Outcome
    exits: list[str] = field(default_factory=list)  # roles that ended by themselves
    leftovers: list[str] = field(default_factory=list)
    open_instances: list[int] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return self.verdict.is_clean and not (
            self.outcome.trouble or self.leftovers or self.open_instances
        )


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    env = os.environ.get
    parser.add_argument("--faults", type=int, default=int(env("FAULTS") or FAULTS))
    parser.add_argument("--seed", type=int, default=int(env("SEED") or 0), help="0: a new one")
    parser.add_argument("--session-timeout", type=float, default=env("SESSION_TIMEOUT") or 4.0)
    parser.add_argument("--rate", type=float, default=0.7, help="new instances a second")
    parser.add_argument("--only", default="", help="names of faults or their beginnings, by comma")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    parser.add_argument("--report", type=Path, help="write the report to this file, too")
    parser.add_argument("--list", action="store_true", help="name all faults and exit")
    return parser.parse_args(given)


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
        await asyncio.to_thread(audit.install, cluster.postgres.url)
        api = await stack.enter_async_context(Api(cluster.url, cluster.token))
        workload = Workload(api, seed=seed, ledger=ledgers, rate=rate, marker=marker)
        await workload.start()
        outcome = await carry_out(cluster, episodes, tell)
        tell("faults are over, waiting for all instances to end")
        await workload.stop()
        left = await workload.drained(_DRAIN_S)
        tell("checking")
        outcome.records += stalls.records
        verdict = await asyncio.to_thread(judge, cluster, workload, outcome, ledgers, marker)
        result = Result(verdict, outcome, open_instances=left)
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
            cluster.postgres.url,
            ledger.read(ledgers),
            logs,
            outcome.records,
            asked=workload.asked,
            marker=marker,
            zookeeper=cluster.ensemble.hosts,
            session_timeout_s=cluster.timeout_s,
        )
    finally:
        logs.close()


def notes(result: Result) -> str:
    """Return what the report's tables do not say."""
    parts = {
        "Trouble": result.outcome.trouble,
        "Processes that outlived their role": result.leftovers,
        "Instances that did not end": [str(number) for number in result.open_instances],
        "Roles that ended by themselves and were restarted": result.exits,
        "Skipped": result.outcome.skipped,
    }
    return "\n".join(
        f"\n{title}:\n\n" + "\n".join(f"- {line}" for line in lines)
        for title, lines in parts.items()
        if lines
    )


async def guarded(work: Coroutine[Any, Any, Result]) -> Result:
    """Do the work; SIGINT and SIGTERM stop it in order, with all its processes."""
    working = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, working.cancel)
    return await working


def isolate() -> str:
    """Take mounts and routes of our own; return why routes are not, "" if they are."""
    with suppress(Refused):  # then the disk cannot be mounted either, which says why
        make_mounts_private()
    try:
        make_network_private()
    except Refused as error:
        return str(error)
    return ""


def conduct(options: argparse.Namespace, seed: int, episodes: Sequence[Episode]) -> int:
    """Run the suite, write the report; return the exit status.

    The folder stays if it was asked for, and if it could tell more than the report does.
    """
    shape = Shape(options.session_timeout, routes_refused=isolate())
    folder = Path(tempfile.mkdtemp(prefix="shoal-chaos-"))
    tell(f"FAULTS={options.faults} SEED={seed} in {folder}")
    begun = time.monotonic()
    keep = True
    try:
        result = asyncio.run(guarded(run(shape, seed, options.rate, episodes, folder)))
        keep = options.keep or not result.is_clean
    except (PostgresqlMissing, asyncio.CancelledError):
        keep = options.keep
        raise
    finally:
        if keep:
            tell(f"everything is kept in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    duration_s = time.monotonic() - begun
    command = f"make chaos FAULTS={options.faults} SEED={seed}"
    info = RunInfo(seed, duration_s, shape.session_timeout_s, command)
    report = render(result.verdict, result.outcome.records, info) + notes(result) + "\n"
    say(report)
    if options.report:
        options.report.write_text(report)
    return EXIT_CLEAN if result.is_clean else EXIT_OFFENCES


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    seed = options.seed or random.SystemRandom().randrange(1, 10**6)
    try:
        makers = chosen(options.only)
    except ValueError as error:
        say(str(error), sys.stderr)
        return EXIT_USAGE
    if options.list:
        say("\n".join(makers))
        return EXIT_CLEAN
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    try:
        return conduct(options, seed, draw(seed, options.faults, makers))
    except PostgresqlMissing as error:
        say(str(error), sys.stderr)
        return EXIT_NO_POSTGRESQL
    except asyncio.CancelledError:
        tell("interrupted")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
