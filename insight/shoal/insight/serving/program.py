"""The process that loads results: ``python -m shoal.insight.serving.program --data DIR --url URL``.

A master starts it when a run of the jobs has ended, and now and then; ``shoal insight load`` at
once. It says what it has done as one line of JSON on standard output, or why it could not on
standard error, and then ends with 1.
"""

import argparse
import asyncio
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from shoal.core.errors import ShoalError, shortened
from shoal.insight.export.program import history_of
from shoal.insight.serving.loader import Loader, LoadSummary
from shoal.insight.serving.store import ResultStore
from shoal.runtime.settings import ClusterSettings, load_settings
from shoal.sql import Database, Patience

# What a program says is bounded: its caller reads the first 64 KiB (``ProgramResult``), and JSON
# writes some characters as twelve bytes.
_MOST_TOLD = 20  # refused results
_LONGEST_REASON = 250  # characters


def main() -> int:
    """Load what is new; return the exit status."""
    parser = argparse.ArgumentParser(prog="shoal.insight.serving.program", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--keep-days", type=float, default=0.0)
    given = parser.parse_args()
    try:
        cluster = load_settings(ClusterSettings, "cluster", given.data)
        done = asyncio.run(load(cluster, given.url, share=given.share, keep_days=given.keep_days))
    except ShoalError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    reasons = [shortened(one, _LONGEST_REASON) for one in done.refused[:_MOST_TOLD]]
    told = replace(done, refused=reasons)
    sys.stdout.write(json.dumps(asdict(told)) + "\n")
    return 0


async def load(
    cluster: ClusterSettings,
    url: str,
    *,
    share: float = 1.0,
    keep_days: float = 0,
    is_all: bool = False,
) -> LoadSummary:
    """Load the results beside a cluster's history in the storage at ``url``. Raises ShoalError."""
    store = ResultStore(await history_of(cluster, url))
    patience = Patience.of(cluster.database_silence_s)
    async with Database(cluster.database, pool_size=2, patience=patience) as database:
        return await Loader(database, store, share=share, keep_days=keep_days).run(is_all=is_all)


if __name__ == "__main__":
    sys.exit(main())
