"""Applications of a standalone Spark cluster, and sessions of a Spark Connect server."""

import json
import re
import urllib.request
from collections import defaultdict
from contextlib import suppress
from typing import Any

import psutil

from tests.kills.plan import MARKER
from tests.kills.sides.side import Sight

_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMEOUT_S = 30
_FINAL = frozenset({"COMPLETED", "FAILED"})


def _json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
        return json.load(answer)


class StandaloneSide:
    """A job is an application that its master calls active, or whose executors are alive.

    ``pages``: URL of the master's own pages; ``worker``: process of the cluster's worker.
    """

    name = "applications of the Spark master"

    def __init__(self, pages: str, worker: int) -> None:
        self._pages, self._worker = pages, worker
        self._markers: dict[str, str] = {}  # of applications, by id

    def look(self) -> Sight:
        """See Side."""
        active = {}
        for application in _json(f"{self._pages}/json/")["activeapps"]:
            if marker := MARKER.search(application["name"]):
                active[application["id"]] = marker[0]
        self._markers |= active
        found: dict[str, set[str]] = defaultdict(set)
        for number in active.keys() | self._executing():
            if number in self._markers:
                found[self._markers[number]].add(number)
        return {marker: frozenset(live) for marker, live in found.items()}

    def _executing(self) -> set[str]:
        """Return the applications that have a live executor."""
        found = set()
        with suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._worker).children(recursive=True):
                with suppress(psutil.Error):
                    command = process.cmdline()
                    if "--app-id" in command:
                        found.add(command[command.index("--app-id") + 1])
        return found


class ConnectSide:
    """A job is a session in which a statement or a job of Spark runs.

    ``pages``: URL of the server's own pages.
    """

    name = "sessions of the Spark Connect server"

    def __init__(self, pages: str) -> None:
        self._root = f"{pages}/api/v1/applications"
        self._root += f"/{_json(self._root)[0]['id']}"
        self._markers: dict[str, str] = {}  # of sessions
        self._over = 0  # so many statements are, the first ones

    def look(self) -> Sight:
        """See Side."""
        working = set()
        query = f"details=false&planDescription=true&offset={self._over}&length=100"
        statements = _json(f"{self._root}/sql?{query}")
        for position, statement in enumerate(statements):
            session = _SESSION.search(statement["description"])
            if session is None:
                continue
            if marker := MARKER.search(statement["planDescription"]):
                self._markers[session[0]] = marker[0]
            if statement["status"] not in _FINAL:
                working.add(session[0])
            elif not working and position == 0:
                self._over += 1
        for job in _json(f"{self._root}/jobs?status=running"):
            working |= set(_SESSION.findall(job.get("description", "")))
        found: dict[str, set[str]] = defaultdict(set)
        for session_id in working & self._markers.keys():
            found[self._markers[session_id]].add(session_id)
        return {marker: frozenset(live) for marker, live in found.items()}
