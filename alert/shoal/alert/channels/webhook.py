"""Webhooks: the facts of a message as JSON, signed, to one address that may be reached."""

import hashlib
import hmac
import json
import time
from typing import Any

from pydantic import Field, StrictStr, model_validator

from shoal.alert.channels.tls import plainly, tls_context
from shoal.core.alerts.channels import Channel, ChannelFailed, Way
from shoal.core.alerts.messages.message import AlertMessage
from shoal.core.definition.fields import NAME_PATTERN, Strict

_LONGEST_ANSWER = 64 * 1024  # bytes that are read of an answer
_SHOWN_ANSWER = 300  # characters
_PASSING = frozenset({408, 409, 425, 429})  # of the 4xx


class WebhookOptions(Strict):
    """Where to, and how the other side knows that it is us."""

    url: StrictStr = Field(
        default="",
        pattern=r"^$|^https?://[^\s]+$",
        max_length=4096,
        description="Address; or url_secret.",
    )
    url_secret: StrictStr = Field(
        default="", pattern=f"^$|{NAME_PATTERN}", description="Secret whose value is the address."
    )
    signing_secret: StrictStr = Field(
        default="",
        pattern=f"^$|{NAME_PATTERN}",
        description="Secret that requests are signed with: HMAC-SHA256, header Shoal-Signature.",
    )
    headers: dict[StrictStr, StrictStr] = Field(
        default_factory=dict, max_length=20, description="Further headers; no secrets."
    )
    ca_certificate: StrictStr = Field(
        default="", max_length=100_000, description="PEM; empty: the authorities of the system."
    )

    @model_validator(mode="after")
    def _has_one_address(self) -> "WebhookOptions":
        if bool(self.url) == bool(self.url_secret):
            raise ValueError("give one of url and url_secret")
        for name, value in self.headers.items():
            if not name.replace("-", "").isalnum() or not name.isascii() or "\n" in value:
                raise ValueError(f"headers.{name}: is not a header")
        return self


class Webhook(Channel[WebhookOptions]):
    """One POST for each message."""

    Options = WebhookOptions

    async def send(self, message: AlertMessage, options: WebhookOptions, way: Way) -> str:
        """Send the request. Redirects are not followed."""
        import httpcore
        import httpx

        from shoal.runtime.outbound.addresses import AddressPolicy
        from shoal.runtime.outbound.guard import AddressRefused, GuardedBackend

        address = options.url or way.secrets.get("url_secret", "")
        try:
            url = httpx.URL(address)
        except (httpx.InvalidURL, TypeError) as error:
            raise ChannelFailed(f"its address is none: {error}", may_pass=False) from error
        if url.scheme not in ("http", "https") or not url.host:
            raise ChannelFailed("its address must begin with http:// or https://", may_pass=False)
        body = json.dumps(message.facts, ensure_ascii=False).encode()
        headers = {
            **options.headers,
            "Content-Type": "application/json",
            "User-Agent": "shoal-alert",
            "Idempotency-Key": message.key,
            "Host": url.netloc.decode("ascii"),
            "Content-Length": str(len(body)),
        }
        if secret := way.secrets.get("signing_secret"):
            headers["Shoal-Signature"] = signature(secret, body, int(time.time()))
        try:
            policy = AddressPolicy.of(way.settings)
            async with (
                httpcore.AsyncConnectionPool(
                    ssl_context=tls_context(options.ca_certificate),
                    network_backend=GuardedBackend(policy),
                ) as pool,
                pool.stream(
                    "POST",
                    httpcore.URL(
                        scheme=url.raw_scheme,
                        host=url.raw_host,
                        port=url.port,
                        target=url.raw_path,
                    ),
                    headers=list(headers.items()),
                    content=body,
                ) as response,
            ):
                said = await _start_of(response)
        except (httpcore.NetworkError, httpcore.TimeoutException) as error:
            raise ChannelFailed(f"{url.host}: {plainly(error)}") from error
        except httpcore.LocalProtocolError as error:
            raise ChannelFailed("the request cannot be sent", may_pass=False) from error
        except httpcore.ProtocolError as error:
            raise ChannelFailed(f"{url.host}: {error}") from error
        except AddressRefused as error:
            raise ChannelFailed(str(error), may_pass=False) from error
        text = f"{response.status} {said}".strip()
        if 200 <= response.status < 300:
            return text
        if 300 <= response.status < 400:
            raise ChannelFailed(f"{text}: redirects are not followed", may_pass=False)
        raise ChannelFailed(text, may_pass=response.status >= 500 or response.status in _PASSING)


def signature(secret: str, body: bytes, at: int) -> str:
    """Return the header: the second it was made in, and the HMAC-SHA256 of ``SECOND.BODY``."""
    made = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={made}"


async def _start_of(response: Any) -> str:
    found = b""
    async for chunk in response.aiter_stream():
        found += chunk
        if len(found) >= _LONGEST_ANSWER:
            break
    return " ".join(found.decode("utf-8", "replace").split())[:_SHOWN_ANSWER]
