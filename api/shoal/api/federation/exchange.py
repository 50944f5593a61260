"""What is fetched from a provider: within a time, up to a size, and nothing but JSON."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx

from shoal.core.untrusted import read_json

MOST_BYTES = 256 * 1024
_MOST_CONNECTIONS = 20


class BadAnswer(Exception):
    """A provider did not answer as it should. The text is for the log."""


def new_client(verify: Any) -> httpx.AsyncClient:
    """Return a client that follows no redirects, and reads nothing from the environment."""
    return httpx.AsyncClient(
        verify=verify,
        trust_env=False,
        follow_redirects=False,
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        # None is kept: one that the other side closes meanwhile would cost somebody a sign-in.
        limits=httpx.Limits(max_connections=_MOST_CONNECTIONS, max_keepalive_connections=0),
    )


async def fetch(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    timeout_s: float,
    *,
    content: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    """Return status and object of an answer, within ``timeout_s`` for all of it.

    Raises BadAnswer.
    """
    try:
        async with (
            asyncio.timeout(timeout_s),
            client.stream(
                method, url, content=content, headers=headers, timeout=timeout_s
            ) as answer,
        ):
            found = read_json(await _read(answer))
    except TimeoutError:
        raise BadAnswer(f"{url} has not answered within {timeout_s} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise BadAnswer(f"{url} could not be asked: {reason}") from error
    except ValueError as error:  # of JSON, of UTF-8
        raise BadAnswer(f"{url} gave nothing to be used ({type(error).__name__})") from error
    if not isinstance(found, dict):
        raise BadAnswer(f"{url} gave no JSON object")
    return answer.status_code, found


async def _read(answer: httpx.Response) -> bytes:
    whole = bytearray()
    async for part in answer.aiter_raw():  # nothing is decompressed: that could be endless
        whole += part
        if len(whole) > MOST_BYTES:
            raise BadAnswer(f"{answer.url} gave more than {MOST_BYTES} bytes")
    return bytes(whole)
