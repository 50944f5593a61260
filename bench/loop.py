"""What holds the event loops, and for how long? ``python bench/loop.py --help``."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    # The checkout instead of this folder, whose queue.py would hide the standard library's.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    import_module("bench.loop_cli").main()
