"""Does a task cost more the more there is beside it? In the past, open, waiting, in its DAG."""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.growth import dag as growth_dag
from bench.growth import engine as growth_engine
from bench.growth import queue as growth_queue
from bench.growth.table import Row, markdown
from bench.support.machine import DATABASES, RESULTS, machine
from bench.support.quiet import log_warnings_to_stderr
from tests.support.database.postgresql import DURABLE, temporary_server


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    add = parser.add_argument
    add("--database", choices=DATABASES, action="append", help="default: both")
    add("--past", type=int, nargs="*", default=[1_000, 100_000, 1_000_000], metavar="TASKS")
    add("--open", type=int, nargs="*", default=[1, 1_000, 10_000], metavar="INSTANCES")
    add("--waiting", type=int, nargs="*", default=[1_000, 1_000_000], metavar="ENTRIES")
    add("--dag", type=int, nargs="*", default=[100, 1_000, 10_000], metavar="TASKS")
    add("--output", type=Path, default=RESULTS, help="folder of the results")
    return parser.parse_args(arguments)


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    given = options_of(sys.argv[1:])
    rows: list[Row] = list(growth_dag.measure(given.dag))
    for database in given.database or DATABASES:
        with fresh(database) as url:
            rows += asyncio.run(growth_engine.past(url, database, given.past))
        with fresh(database) as url:
            rows += asyncio.run(growth_engine.beside(url, database, given.open))
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        for entries in given.waiting:
            rows += growth_queue.measure(Path(folder), entries)
    text = f"{markdown(rows)}\n{machine()}\n"
    sys.stdout.write(text)
    given.output.mkdir(parents=True, exist_ok=True)
    (given.output / "growth.md").write_text(text, encoding="utf-8")
    content = {"machine": machine(), "rows": [vars(row) for row in rows]}
    (given.output / "growth.json").write_text(json.dumps(content, indent=1) + "\n")


@contextmanager
def fresh(database: str) -> Iterator[str]:
    """Yield the URL of an empty database."""
    if database == "postgresql":
        with temporary_server(DURABLE) as server:
            yield server.create("shoal")
    else:
        with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
            yield f"sqlite:///{folder}/shoal.db"


if __name__ == "__main__":
    main()
