"""A cluster's API as a stubborn client sees it: requests are repeated until they are answered.

Plain HTTP, so that the suite judges the API and not our own client.
"""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

import httpx

_TIMEOUT_S = 15.0
_PAUSE_S = 0.25  # between two attempts to reach an API that is not there
_REFUSED = frozenset({400, 404, 409, 413, 415, 422})


class Refused(Exception):
    """The API has answered, and will not do it."""


class Api:
    """The API at ``url``, which may be away for a while at any time."""

    def __init__(
        self, url: str, token: str, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=f"{url.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT_S,
            trust_env=False,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.aclose()

    async def request(self, method: str, path: str, **rest: Any) -> Any:
        """Return the JSON of the answer, however long it takes. Raises Refused."""
        while True:
            try:
                answer = await self._http.request(method, path, **rest)
            except httpx.TransportError:
                await asyncio.sleep(_PAUSE_S)
                continue
            if answer.is_success:
                return answer.json()
            if answer.status_code in _REFUSED:
                raise Refused(f"{method} {path}: {answer.status_code} {answer.text}")
            await asyncio.sleep(_PAUSE_S)

    async def publish(self, definition: dict[str, Any]) -> None:
        """Publish a workflow of the project ``default``."""
        await self.request(
            "PUT", f"/projects/default/workflows/{definition['name']}", json=definition
        )

    async def put_group(self, name: str, slots: int) -> None:
        """Make a concurrency group of the project ``default``."""
        path = f"/projects/default/concurrency-groups/{name}"
        await self.request("PUT", path, json={"slots": slots})

    async def tell(self, url: str) -> None:
        """Have runs of the project ``default`` that fail or are stopped told to ``url``."""
        for path, body in (
            ("alert-channels/sink", {"kind": "webhook", "options": {"url": url}}),
            ("alert-receivers/sink", {"members": [{"targets": [{"channel": "sink"}]}]}),
            (
                "alert-rules/ends",
                {
                    "triggers": ["run.failed", "run.stopped"],
                    "receivers": ["sink"],
                    "group_for": "1s",
                },
            ),
        ):
            await self.request("PUT", f"/projects/default/{path}", json=body)

    async def put_resource(self, path: str, content: bytes, version: int) -> None:
        """Store a file of the project ``default`` as this version, whatever is repeated."""
        await self.request(
            "PUT",
            f"/projects/default/resource-contents/{path}",
            content=content,
            params={"expected_version": version - 1},
        )

    async def backfill(self, key: str, body: dict[str, Any]) -> int:
        """Store the request for a backfill; return its command's id. Raises Refused."""
        headers = {"Idempotency-Key": key}
        answer = await self.request("POST", "/backfills", json=body, headers=headers)
        return int(answer["command"]["id"])

    async def command(self, key: str, body: dict[str, Any]) -> int:
        """Store a command under an idempotency key; return its id. Raises Refused."""
        answer = await self.request(
            "POST", "/commands", json=body, headers={"Idempotency-Key": key}
        )
        return int(answer["id"])

    async def outcome(self, command_id: int) -> dict[str, Any]:
        """Return a command once it is carried out or refused."""
        while True:
            answer: dict[str, Any] = await self.request(
                "GET", f"/commands/{command_id}", params={"wait": 5}
            )
            if answer["state"] != "PENDING":
                return answer

    async def instances(self, states: list[str]) -> AsyncIterator[dict[str, Any]]:
        """Yield the instances that are in one of these states."""
        query: dict[str, Any] = {"state": states, "limit": 200}
        while True:
            answer = await self.request("GET", "/instances", params=query)
            for item in answer["items"]:
                yield item
            if not answer.get("next"):
                return
            query["cursor"] = answer["next"]

    async def pending_commands(self) -> int | None:
        """Return how many commands nobody has carried out yet; None if that is not known now."""
        backlog = (await self.request("GET", "/cluster"))["backlog"]
        return None if backlog is None else int(backlog["pending_commands"])

    async def open_backfills(self) -> int:
        """Return how many backfills have dates ahead of them; 200 stand for more."""
        query = {"state": ["RUNNING", "CANCELLING"], "limit": 200}
        return len((await self.request("GET", "/backfills", params=query))["items"])

    async def state(self, instance_id: int) -> str:
        """Return the state of an instance."""
        return str((await self.request("GET", f"/instances/{instance_id}"))["state"])
