"""The client's address behind proxies, whatever the client says itself."""

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from shoal.api.web.forwarded import behind_proxies


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer the client's address and the scheme."""
    said = f"{scope['client'][0]} {scope['scheme']}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": said})


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        ((), ["198.51.100.1"], "10.0.0.9"),
        (("10.0.0.8",), ["198.51.100.1"], "10.0.0.9"),
        (("10.0.0.9",), ["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
        (("10.0.0.0/8",), ["203.0.113.9, 198.51.100.1, 10.0.0.7"], "198.51.100.1"),
        (("*",), ["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
        (("*",), ["203.0.113.9", "198.51.100.1"], "198.51.100.1"),
        (("*", "10.0.0.9"), ["203.0.113.9,198.51.100.1:4711"], "198.51.100.1"),
        (("*",), [], "10.0.0.9"),
        (("*",), ["203.0.113.9, "], "10.0.0.9"),
    ],
)
async def test_client_cannot_name_its_own_address(
    proxies: tuple[str, ...], forwarded: list[str], address: str
) -> None:
    transport = httpx.ASGITransport(behind_proxies(app, proxies), client=("10.0.0.9", 1))
    headers = [("X-Forwarded-Proto", "https"), *(("X-Forwarded-For", one) for one in forwarded)]
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        said = (await client.get("/", headers=headers)).text
    trusts = bool(proxies) and proxies != ("10.0.0.8",)
    assert said == f"{address} {'https' if trusts else 'http'}"
