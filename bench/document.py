"""Put what the benches have written into the documentation: ``python -m bench.document``.

Between ``<!-- results of NAME -->`` and ``<!-- end of NAME -->`` there stands what
bench/results/NAME.md holds; what has not been measured stays as it is.
"""

import re
import sys
from pathlib import Path

from bench.support.machine import CHECKOUT, RESULTS

PAGES = [CHECKOUT / "docs" / name for name in ("performance.md", "retention.md")]
_PART = re.compile(r"(<!-- results of (\S+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def fill(page: str, results: Path) -> str:
    """Return the page with all results in their places."""

    def part(found: re.Match[str]) -> str:
        file = results / f"{found[2]}.md"
        if not file.exists():
            return found[0]
        return f"{found[1]}\n{file.read_text(encoding='utf-8').strip()}\n\n{found[3]}"

    return _PART.sub(part, page)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(fill(page.read_text(encoding="utf-8"), RESULTS), encoding="utf-8")
        sys.stdout.write(f"{page} has the results of {RESULTS}\n")
