"""Who signs in waits for a turn; nobody else does."""

import asyncio
import json
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from shoal.api.web.middleware import PacedLogins

LOGIN = "/api/v1/login"


class Served:
    """What reached the application, in order."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope.get("path", scope["type"]))


async def request(paced: PacedLogins, path: str, method: str = "POST") -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [],
        "server": ("localhost", 443),
        "scheme": "https",
    }
    await paced(scope, receive, send)
    return sent


async def test_others_pass_while_logins_stand_in_a_row() -> None:
    served = Served()
    paced = PacedLogins(served)
    async with asyncio.TaskGroup() as group:
        for path in (LOGIN, f"{LOGIN}/ldap", LOGIN):
            group.create_task(request(paced, path))
        group.create_task(request(paced, "/api/v1/projects"))
        group.create_task(request(paced, LOGIN, "GET"))  # the ways of signing in
        group.create_task(request(paced, f"{LOGIN}s"))
    others = ["/api/v1/projects", LOGIN, f"{LOGIN}s"]
    assert served.paths == [LOGIN, *others, f"{LOGIN}/ldap", LOGIN]


async def test_other_kinds_of_scopes_pass() -> None:
    served = Served()
    await PacedLogins(served)({"type": "lifespan"}, None, None)  # type: ignore[arg-type]
    assert served.paths == ["lifespan"]


async def test_a_row_that_is_too_long_is_refused() -> None:
    served = Served()
    paced = PacedLogins(served, apart_s=5.0)
    await request(paced, LOGIN)
    start, body = await request(paced, LOGIN)
    assert served.paths == [LOGIN]
    assert start["status"] == 429
    assert (b"retry-after", b"5") in start["headers"]
    assert json.loads(body["body"])["type"] == "/problems/too-many-requests"
