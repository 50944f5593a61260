"""The process that exports the history: ``python -m shoal.insight.export.program --data DIR``.

A master starts it now and then, ``shoal insight export`` at once. It says what it has done as one
line of JSON on standard output, or why it could not on standard error, and then ends with 1.
"""

import argparse
import asyncio
import gc
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from shoal.core.errors import ShoalError
from shoal.insight.export.exporter import Exporter, ExportSummary
from shoal.insight.history.store import HistoryStore
from shoal.runtime.settings import ClusterSettings, load_settings
from shoal.sql import Database, Patience

# Rows come as tuples, thousands at a time, and go as a whole: to look for cycles among them after
# each 700, as Python does by itself, takes a fifth of an export.
_OBJECTS_BETWEEN_COLLECTIONS = 100_000
_MOST_TOLD = 20  # files: what a program says is bounded


def main() -> int:
    """Export all that has ended by now; return the exit status."""
    parser = argparse.ArgumentParser(prog="shoal.insight.export.program", description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--keep-days", type=float, default=0.0)
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--forget-damaged", action="store_true")
    arguments = parser.parse_args()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        cluster = load_settings(ClusterSettings, "cluster", arguments.data)
        done = asyncio.run(
            export(
                cluster,
                arguments.url,
                arguments.share,
                arguments.keep_days,
                anew=arguments.anew,
                forget_damaged=arguments.forget_damaged,
            )
        )
    except ShoalError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    until = done.settled_until
    told = replace(done, damaged=done.damaged[:_MOST_TOLD], lacking=done.lacking[:_MOST_TOLD])
    said = asdict(told) | {"settled_until": until and until.isoformat()}
    sys.stdout.write(json.dumps(said) + "\n")
    return 0


async def export(
    cluster: ClusterSettings,
    url: str,
    share: float,
    keep_days: float,
    *,
    anew: bool = False,
    forget_damaged: bool = False,
) -> ExportSummary:
    """Export the history of a cluster to the storage at ``url``. Raises ShoalError."""
    async with _database(cluster) as database:
        exporter = Exporter(
            database,
            await _store(database, url),
            share=share,
            keep_days=keep_days,
            anew=anew,
            forget_damaged=forget_damaged,
        )
        return await exporter.run()


async def history_of(cluster: ClusterSettings, url: str) -> HistoryStore:
    """Return the store of a cluster's history in the storage at ``url``. Raises ShoalError."""
    async with _database(cluster) as database:
        return await _store(database, url)


async def exports_of(cluster: ClusterSettings) -> int:
    """Return how many exports a cluster's database knows of. Raises ShoalError."""
    async with _database(cluster) as database, database.unit_of_work(read_only=True) as uow:
        return (await uow.history_exports.last()).sequence


def _database(cluster: ClusterSettings) -> Database:
    patience = Patience.of(cluster.database_silence_s)
    return Database(cluster.database, pool_size=2, patience=patience)


async def _store(database: Database, url: str) -> HistoryStore:
    async with database.unit_of_work() as uow:
        uid = await uow.cluster.uid()
        await uow.commit()
    return HistoryStore(url, uid)


if __name__ == "__main__":
    sys.exit(main())
