"""A process that reads all rows of a statement and prints their number and what it took.

Run as a module, as attempts are: DuckDB takes a process without a file for a person, and draws a
bar.
"""

import json
import re
import sys
from pathlib import Path

from shoal.core.data_sources import DataSource
from shoal.worker.types.sql.drivers import connect


def main() -> None:
    """Take a data source as JSON from standard input and a statement as the argument."""
    fields = json.load(sys.stdin)
    source = DataSource(**fields)
    session = connect(
        source, tag="peak", attempt=1, log=print, read_only=False, statement_timeout_s=None
    )
    for _ in session.execute("SELECT 1"):
        pass
    before = _peak()
    count = sum(1 for _ in session.execute(sys.argv[1]))
    sys.stdout.write(f"{count} {_peak() - before}\n")


def _peak() -> float:
    """Return MiB. Not ru_maxrss: that of a new process begins with what its parent has."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", status)
    assert found
    return int(found[1]) / 1024


if __name__ == "__main__":
    main()
