"""Write the files that follow from the API: see the package."""

import argparse
import sys

from tests.contract.files import PROMISES, contents, stale
from tests.contract.promises import broken


def main() -> int:
    """Write what differs, remove what is stale; return 1 if that would break callers."""
    parser = argparse.ArgumentParser(prog="python -m tests.contract", description=__doc__)
    parser.add_argument(
        "--break", dest="may_break", action="store_true", help="write although callers break"
    )
    may_break = parser.parse_args().may_break
    found = dict(contents())
    before = PROMISES.read_text().splitlines() if PROMISES.exists() else []
    if (lost := broken(before, found[PROMISES].splitlines())) and not may_break:
        text = "\n".join(lost)
        sys.stderr.write(
            f"callers rely on what has changed:\n{text}\n"
            "keep it, or write all the same with --break and say so in CHANGELOG.md\n"
        )
        return 1
    for path, content in found.items():
        if not path.exists() or path.read_text() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            sys.stdout.write(f"written: {path}\n")
    for path in stale(found):
        path.unlink()
        sys.stdout.write(f"removed: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
