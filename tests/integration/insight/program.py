"""The program of insight jobs as a process of its own."""

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from tests.integration.insight.histories import FIRST
from tests.integration.insight.results import Row

LAST = FIRST + timedelta(days=6)


DAYS = f"{FIRST}:{LAST}"


def started(history: Path | str, out: Path | str, *options: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "shoal.insight.jobs", "--history", str(history)]
    argv += ["--days", DAYS, "--out", str(out), *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, list[Row], str]:
    """Return the exit code, what the program has said of its steps, and its errors."""
    out, err = process.communicate(timeout=500)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err
