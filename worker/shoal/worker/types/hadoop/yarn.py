"""What carries a task's tag in a YARN cluster, found and ended by YARN's own command line.

The client of an application may be dead while that runs on, so it is found by its tag.
"""

import re
import subprocess

from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.hadoop.client import Hadoop

_CLI = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
_LIVE = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_ID = re.compile(r"^[ \t]*(application_\d+_\d+)\s", re.MULTILINE)
_CALL_TIMEOUT_S = 15.0


def end(hadoop: Hadoop, tag: str) -> None:
    """End every application with the tag; return when none is live. Raises WorkFailed."""
    said = _run(hadoop, "-list", "-appTags", tag, "-appStates", _LIVE)
    if found := _ID.findall(said):
        _run(hadoop, "-kill", *found)  # which returns when they have ended


def _run(hadoop: Hadoop, *arguments: str) -> str:
    argv = hadoop.argv(_CLI, "application", *arguments)
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_CALL_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        text = f"YARN's resource manager did not answer within {_CALL_TIMEOUT_S:g} s"
        raise WorkFailed(text) from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise WorkFailed(f"YARN refused: {lines[-1] if lines else 'it said nothing'}")
    return done.stdout
