"""``python -m shoal.insight.jobs``: compute roll-ups of some days of the history.

Says on standard output, a JSON object a line, what each job has stored and how long it took. Ends
with 1 and a message on standard error if something is wrong; what was stored until then is right.
"""

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from shoal.core.errors import ShoalError
from shoal.insight.jobs.errors import NoHistoryNamed, NoSpark


def main(argv: Sequence[str] | None = None) -> int:
    """Run the jobs that the arguments ask for."""
    parser = argparse.ArgumentParser(prog="python -m shoal.insight.jobs", description=__doc__)
    add = parser.add_argument
    add(
        "--history",
        help="folder or URL of the exported history; default: the setting history_url",
    )
    add(
        "--days",
        required=True,
        help="DAY or FROM:TO, both included, such as 2026-01-31; UTC, up to today",
    )
    add("--out", help="folder or URL for the results; beside the history if not given")
    add(
        "--late",
        action="store_true",
        help="also the days before, 31 at most, that rows have come for since the last such run",
    )
    add("--only", help="names of jobs, separated by commas; all if not given")
    add("--format", choices=["parquet", "jsonl"], default="parquet")
    add(
        "--master",
        help="where Spark runs, such as spark://host:7077; this machine if not given (or what "
        "spark-submit has set)",
    )
    add("--scratch", help="folder for what is unfinished, seen by all machines of a cluster")
    add("--memory", default="1g", help="heap of Spark's driver (default: %(default)s)")
    given = parser.parse_args(argv)
    try:
        return _run(given)
    except ShoalError as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _run(given: argparse.Namespace) -> int:
    if importlib.util.find_spec("pyspark") is None:
        raise NoSpark(f"the jobs need PySpark: {sys.executable} -m pip install 'shoal[insight]'")
    from shoal.insight.history.store import HistoryStore
    from shoal.insight.jobs.catalogue import chosen
    from shoal.insight.jobs.days import Days
    from shoal.insight.jobs.output import Format
    from shoal.insight.jobs.run import JobsRequest, run, run_with_late

    under_submit = "PYSPARK_GATEWAY_PORT" in os.environ
    history = HistoryStore.at(given.history or _history_of_settings())
    request = JobsRequest(
        history=history.root,
        out=given.out or history.results,
        days=Days.parse(given.days, datetime.now(UTC).date()),
        jobs=chosen(given.only.split(",") if given.only else None),
        master=given.master or (None if under_submit else "local[*]"),
        format=Format(given.format),
        scratch=given.scratch,
        memory=given.memory,
    )
    for done in run_with_late(request) if given.late else run(request):
        sys.stdout.write(json.dumps(asdict(done) | {"seconds": round(done.seconds, 2)}) + "\n")
        sys.stdout.flush()
    return 0


def _history_of_settings() -> str:
    """Return where this machine's settings say that the history is. Raises NoHistoryNamed."""
    from shoal.runtime.settings import ClusterSettings, load_settings

    data = Path(os.environ.get("SHOAL_DATA", "~/.shoal")).expanduser()
    url = load_settings(ClusterSettings, "cluster", data).history_url
    if not url:
        raise NoHistoryNamed
    return url


if __name__ == "__main__":
    sys.exit(main())
