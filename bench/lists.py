"""What does a page of a list cost with a million instances? ``python bench/lists.py --help``."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    # The checkout instead of this folder, whose queue.py would hide the standard library's.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    import_module("bench.lists_cli").main()
