"""The few REST requests that benchmarks make, as light as Python can: one connection, no models."""

import http.client
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

TIMEOUT_S = 120.0
IDLE_S = 2.0  # the server closes connections that nobody uses, after 5 s
PAGE = 500  # the most items that the API gives at once


class Rest:
    """One connection to the API. Raises SystemExit if an answer is not what it should be."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._http = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)
        self._used = time.monotonic()
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def close(self) -> None:
        self._http.close()

    def publish(
        self, name: str, tasks: Sequence[Mapping[str, Any]], project: str = "default"
    ) -> None:
        """Publish a workflow; the project has to be there."""
        body = json.dumps({"name": name, "tasks": list(tasks)}).encode()
        self._ask("PUT", f"/projects/{project}/workflows/{name}", body)

    def make_project(self, name: str) -> None:
        """Make a project."""
        self._ask("PUT", f"/projects/{name}", b"{}")

    def start(self, workflow: str, project: str = "default") -> None:
        """Ask for one instance."""
        body = {"type": "START", "project": project, "workflow": workflow}
        self._ask("POST", "/commands", json.dumps(body).encode())

    def start_many(
        self, workflow: str, instances: int, connections: int, project: str = "default"
    ) -> None:
        """Ask for so many instances, each by a request of its own, over several connections."""

        def share(number: int) -> None:
            own = Rest(self._url, self._token)
            for _ in range(number, instances, connections):
                own.start(workflow, project)
            own.close()

        with ThreadPoolExecutor(connections) as pool:
            for _ in pool.map(share, range(min(connections, instances))):
                pass

    def has(self, workflow: str, *states: str) -> bool:
        """Return whether the workflow has an instance in one of ``states``."""
        return any(self.instances(workflow, *states, limit=1))

    def instances(self, workflow: str, *states: str, limit: int = PAGE) -> Iterator[dict[str, Any]]:
        """Yield a workflow's instances in one of ``states`` (none: all), newest first."""
        query = [("project", "default"), ("workflow", workflow), ("limit", str(limit))]
        query += [("state", state) for state in states]
        cursor: str | None = None
        while True:
            more = [("cursor", cursor)] if cursor else []
            page = self._ask("GET", f"/instances?{urlencode(query + more)}")
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def tasks(self, workflow: str, project: str = "default") -> list[dict[str, Any]]:
        """Return the newest attempts of a workflow, one page of them."""
        query = [("project", project), ("workflow", workflow), ("limit", str(PAGE))]
        found: list[dict[str, Any]] = self._ask("GET", f"/task-instances?{urlencode(query)}")[
            "items"
        ]
        return found

    def health(self) -> dict[str, Any]:
        """Return what the cluster says of itself."""
        return self._ask("GET", "/health")

    def _ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        if time.monotonic() - self._used > IDLE_S:
            self._http.close()  # before the server does; it opens again by itself
        self._used = time.monotonic()
        self._http.request(method, f"/api/v1{path}", body, self._headers)
        answer = self._http.getresponse()
        text = answer.read()
        if not 200 <= answer.status < 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text.decode(errors='replace')}")
        return cast("dict[str, Any]", json.loads(text))
