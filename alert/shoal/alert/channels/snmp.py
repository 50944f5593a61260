"""SNMP traps, v2c and v3. SHOAL-ALERT-MIB.txt beside this file names what they hold."""

import time
from typing import Any, Literal

from pydantic import Field, StrictStr, model_validator

from shoal.core.alerts.channels import Channel, ChannelFailed, Way
from shoal.core.alerts.messages.message import AlertMessage
from shoal.core.definition.fields import NAME_PATTERN, Strict

# The experimental branch of net-snmp: no number is registered for Shoal.
ROOT = "1.3.6.1.4.1.8072.9999.9999.1983"
ENGINE = "80000009037368616c65727401"  # "shalert", of an enterprise's octets
_FIRST_BOOT = 1_767_225_600  # the first second of 2026
_LONGEST = 1000  # characters of a text: a datagram has to hold all
_OBJECTS = ("key", "kind", "severity", "project", "subject", "text", "url")


class SnmpOptions(Strict):
    """Where traps go, and how they are protected."""

    host: StrictStr = Field(min_length=1, max_length=255)
    port: int = Field(default=162, ge=1, le=65535)
    version: Literal["2c", "3"] = "3"
    community_secret: StrictStr = Field(
        default="", pattern=f"^$|{NAME_PATTERN}", description="Of version 2c."
    )
    user: StrictStr = Field(default="", max_length=32, description="Of version 3.")
    authentication: Literal["SHA", "SHA256", "SHA512", "none"] = "SHA256"
    authentication_secret: StrictStr = Field(default="", pattern=f"^$|{NAME_PATTERN}")
    privacy: Literal["AES128", "AES256", "none"] = "AES128"
    privacy_secret: StrictStr = Field(default="", pattern=f"^$|{NAME_PATTERN}")
    engine_id: StrictStr = Field(
        default=ENGINE,
        pattern=r"^(?:[0-9a-fA-F]{2}){5,32}$",
        description="Of the sender, which the other side has to know (version 3).",
    )

    @model_validator(mode="after")
    def _is_whole(self) -> "SnmpOptions":
        if self.version == "2c" and not self.community_secret:
            raise ValueError("community_secret: name the secret of the community")
        if self.version == "3":
            if not self.user:
                raise ValueError("user: version 3 needs one")
            if self.authentication != "none" and not self.authentication_secret:
                raise ValueError("authentication_secret: name the secret of the pass phrase")
            if self.privacy != "none" and not self.privacy_secret:
                raise ValueError("privacy_secret: name the secret of the pass phrase")
            if self.privacy != "none" and self.authentication == "none":
                raise ValueError("privacy: needs authentication")
        return self


class Snmp(Channel[SnmpOptions]):
    """One trap for each message. Nothing answers a trap."""

    Options = SnmpOptions

    async def send(self, message: AlertMessage, options: SnmpOptions, way: Way) -> str:
        """Send the trap."""
        from pysnmp.error import PySnmpError
        from pysnmp.hlapi.v3arch.asyncio import (
            ContextData,
            NotificationType,
            ObjectIdentity,
            OctetString,
            send_notification,
        )

        from shoal.runtime.outbound.addresses import AddressPolicy
        from shoal.runtime.outbound.guard import AddressRefused, require_allowed, resolve

        try:
            addresses = await resolve(options.host, options.port)
            for one in addresses:
                require_allowed(AddressPolicy.of(way.settings), options.host, one)
        except AddressRefused as error:
            raise ChannelFailed(str(error), may_pass=False) from error
        except (OSError, UnicodeError) as error:
            raise ChannelFailed(f"{options.host}: its name cannot be looked up") from error
        trap = NotificationType(ObjectIdentity(f"{ROOT}.0.1")).add_varbinds(
            *(
                (f"{ROOT}.1.{number}.0", OctetString(text.encode()[:_LONGEST]))
                for number, text in enumerate(_texts(message), 1)
            )
        )
        engine = _engine(options.engine_id, int(time.time()))
        try:
            failed, status, _, _ = await send_notification(
                engine,
                _credentials(options, way),
                await _target(addresses[0], options.port),
                ContextData(),
                "trap",
                trap,
            )
        except (PySnmpError, OSError) as failure:
            raise ChannelFailed(f"the trap cannot be sent: {failure}") from failure
        finally:
            engine.close_dispatcher()
        if failed or status:
            raise ChannelFailed(f"the trap cannot be sent: {failed or status}")
        return "sent; traps are not answered"


def _engine(engine_id: str, now_s: int) -> Any:
    """Return a sender with this id. One that begins later counts as one that has booted later.

    The library would keep the count of boots in a file that all users of the machine can write; a
    receiver takes nothing from a sender whose count goes back.
    """
    from pysnmp.hlapi.v3arch.asyncio import OctetString, SnmpEngine

    engine = SnmpEngine()
    identity, boots = engine.get_mib_builder().import_symbols(
        "__SNMP-FRAMEWORK-MIB", "snmpEngineID", "snmpEngineBoots"
    )
    identity.syntax = identity.syntax.clone(OctetString(hexValue=engine_id))
    boots.syntax = boots.syntax.clone(max(1, now_s - _FIRST_BOOT))
    engine.snmpEngineID = identity.syntax
    return engine


def _texts(message: AlertMessage) -> list[str]:
    values = {
        "key": message.key,
        "kind": message.kind,
        "severity": message.severity,
        "project": message.project,
        "subject": message.subject,
        "text": message.text,
        "url": str(message.facts.get("url") or ""),
    }
    return [str(values[name]) for name in _OBJECTS]


async def _target(address: str, port: int) -> Any:
    from pysnmp.hlapi.v3arch.asyncio import Udp6TransportTarget, UdpTransportTarget

    kind = Udp6TransportTarget if ":" in address else UdpTransportTarget
    return await kind.create((address, port))


def _credentials(options: SnmpOptions, way: Way) -> Any:
    from pysnmp.hlapi.v3arch.asyncio import (
        USM_AUTH_HMAC96_SHA,
        USM_AUTH_HMAC192_SHA256,
        USM_AUTH_HMAC384_SHA512,
        USM_AUTH_NONE,
        USM_PRIV_CFB128_AES,
        USM_PRIV_CFB256_AES,
        USM_PRIV_NONE,
        CommunityData,
        OctetString,
        UsmUserData,
    )

    if options.version == "2c":
        return CommunityData(way.secrets["community_secret"], mpModel=1)  # noqa: S508 - asked for
    authentication = {
        "SHA": USM_AUTH_HMAC96_SHA,
        "SHA256": USM_AUTH_HMAC192_SHA256,
        "SHA512": USM_AUTH_HMAC384_SHA512,
        "none": USM_AUTH_NONE,
    }
    privacy = {
        "AES128": USM_PRIV_CFB128_AES,
        "AES256": USM_PRIV_CFB256_AES,
        "none": USM_PRIV_NONE,
    }
    return UsmUserData(
        options.user,
        authKey=way.secrets.get("authentication_secret") or None,
        privKey=way.secrets.get("privacy_secret") or None,
        authProtocol=authentication[options.authentication],
        privProtocol=privacy[options.privacy],
        securityEngineId=OctetString(hexValue=options.engine_id),
    )
