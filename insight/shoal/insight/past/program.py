"""The process that reads past runs: ``python -m shoal.insight.past.program``.

It answers questions, one line of JSON each, as they come on standard input, and ends with it. So
who asks needs neither the library for Parquet nor its memory.
"""

import argparse
import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from shoal.core.errors import ShoalError
from shoal.insight.history.store import HistoryStore
from shoal.insight.past.questions import PageWanted

_MOST_MEMORY = 2 << 30  # bytes of its own; files are read in parts of some ten MB


def main() -> int:
    """Answer until no questions come; return the exit status."""
    parser = argparse.ArgumentParser(prog="shoal.insight.past.program", description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--cluster", required=True)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = _MOST_MEMORY if hard == resource.RLIM_INFINITY else min(hard, _MOST_MEMORY)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    answer = _answering(HistoryStore(arguments.url, arguments.cluster))
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.write(json.dumps({**answer(asked), "number": asked["number"]}) + "\n")
        sys.stdout.flush()
    return 0


def _answering(store: HistoryStore) -> Any:
    """Return what answers a question with an answer, or with why there is none."""
    try:
        import pyarrow as pa

        from shoal.insight.past.reader import PastReader
    except ImportError as error:
        why = f"{error}; the API needs the extra files: pip install 'shoal[files]'"
        return lambda _: {"error": why}
    reader = PastReader(store)

    def answer(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            if "instance" in asked:
                run = reader.run(asked["instance"])
                return {"run": run and asdict(run), "exports": reader.exports}
            page = reader.page(PageWanted.from_json(asked["page"]))
            return {"page": asdict(page), "exports": reader.exports}
        except ShoalError as error:
            return {"error": str(error)}
        # A file may have other columns than those that are known here, or none at all.
        except (pa.ArrowException, MemoryError, OSError, LookupError, ValueError) as error:
            why = str(error) or type(error).__name__
            return {"error": f"files of the history in {store.root} cannot be read: {why}"}

    return answer


if __name__ == "__main__":
    sys.exit(main())
