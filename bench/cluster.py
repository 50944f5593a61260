"""A real cluster on this machine for a benchmark, and a thin client of its REST API."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import httpx

from shoal.client.local.cluster import LocalCluster
from shoal.client.local.zookeeper import free_port
from tests.postgresql import DURABLE, temporary_server

TIMEOUT_S = 600.0
_LOOK_S = 0.05


@dataclass(frozen=True)
class Size:
    """How many processes of each kind, and tasks at once per worker."""

    masters: int = 1
    workers: int = 1
    slots: int = 8


class Rest:
    """The few requests that benchmarks make."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.Client(
            base_url=f"{url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_S,
            trust_env=False,
        )

    def close(self) -> None:
        self._http.close()

    def publish(self, name: str, tasks: Sequence[Mapping[str, Any]], **fields: Any) -> None:
        """Publish a workflow."""
        body = {"name": name, "tasks": list(tasks), **fields}
        self._http.put(f"/projects/default/workflows/{name}", json=body).raise_for_status()

    def start(self, workflow: str) -> int:
        """Ask for an instance; return the command's id."""
        body = {"type": "START", "project": "default", "workflow": workflow}
        answer = self._http.post("/commands", json=body)
        answer.raise_for_status()
        return int(answer.json()["id"])

    def ended(self, workflow: str, count: int) -> list[dict[str, Any]]:
        """Wait until ``count`` instances of a workflow have succeeded; return the last of them."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            found = self._instances(workflow, count)
            if found is not None:
                return found
            time.sleep(_LOOK_S)  # a look costs a thousandth of what is measured
        raise SystemExit(f"{workflow}: not done in {TIMEOUT_S:g} s")

    def _instances(self, workflow: str, count: int) -> list[dict[str, Any]] | None:
        query: dict[str, Any] = {"project": "default", "workflow": workflow, "limit": 1}
        for state in ("FAILED", "STOPPED"):
            if self._list({**query, "state": state}):
                raise SystemExit(f"{workflow}: an instance is {state}: look at the cluster's logs")
        opened = [self._list({**query, "state": state}) for state in ("RUNNING", "QUEUED")]
        if any(opened):
            return None
        found: list[dict[str, Any]] = self._list({**query, "state": "SUCCEEDED", "limit": 500})
        return found if len(found) >= min(count, 500) else None

    def _list(self, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        answer = self._http.get("/instances", params=dict(query))
        answer.raise_for_status()
        items: list[dict[str, Any]] = answer.json()["items"]
        return items


@dataclass(frozen=True)
class Running:
    """A cluster that serves."""

    rest: Rest
    folder: Path


@contextmanager
def running(folder: Path, database: str, size: Size) -> Iterator[Running]:
    """Run a cluster with ``database`` (``sqlite`` or ``postgresql``) below ``folder``."""
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        environment = {"SHOAL_LOG_LEVEL": os.environ.get("SHOAL_LOG_LEVEL", "info")}
        if database == "postgresql":
            server = stack.enter_context(temporary_server(DURABLE))
            environment["SHOAL_DATABASE_URL"] = server.create("shoal")
        stack.enter_context(mock.patch.dict(os.environ, environment))
        cluster = stack.enter_context(
            LocalCluster(
                folder,
                masters=size.masters,
                workers=size.workers,
                slots=size.slots,
                api_port=free_port(),
            )
        )
        rest = Rest(cluster.url, cluster.token)
        stack.callback(rest.close)
        yield Running(rest, folder)
