"""E-mail by SMTP: text and HTML, encrypted unless the options say otherwise."""

import ssl
from collections.abc import Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import formatdate
from typing import Literal

from pydantic import Field, StrictStr

from shoal.alert.channels.tls import plainly, tls_context
from shoal.core.alerts.channels import Channel, ChannelFailed, Way
from shoal.core.alerts.messages.message import AlertMessage
from shoal.core.alerts.rules import Severity
from shoal.core.definition.fields import NAME_PATTERN, Strict

_IMPORTANCE = {Severity.INFO: "low", Severity.WARNING: "normal", Severity.CRITICAL: "high"}
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_ANSWER_S = 20.0  # for each answer of the server


class EmailOptions(Strict):
    """The server that mail is given to, and the sender."""

    host: StrictStr = Field(min_length=1, max_length=255, description="The SMTP server.")
    port: int | None = Field(
        default=None, ge=1, le=65535, description="Null: 587 with starttls, 465 with tls, 25."
    )
    encryption: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="The certificate is verified."
    )
    sender: StrictStr = Field(
        pattern=r"^[^\s@<>]+@[^\s@<>]+$", max_length=320, description="Address it is from."
    )
    user: StrictStr = Field(
        default="", max_length=320, description="User name to sign in with; empty: no sign-in."
    )
    password_secret: StrictStr = Field(
        default="", pattern=f"^$|{NAME_PATTERN}", description="Secret of the project."
    )
    ca_certificate: StrictStr = Field(
        default="", max_length=100_000, description="PEM; empty: the authorities of the system."
    )


class Email(Channel[EmailOptions]):
    """One mail to all addresses."""

    Options = EmailOptions
    needs_addresses = True

    async def send(self, message: AlertMessage, options: EmailOptions, way: Way) -> str:
        """Hand the mail in."""
        import aiosmtplib

        from shoal.runtime.outbound.addresses import AddressPolicy
        from shoal.runtime.outbound.guard import AddressRefused, open_socket

        mail = compose(message, options.sender, way.to)
        encryption = options.encryption
        port = options.port or _PORTS[encryption]
        try:
            refused, answer = await aiosmtplib.send(
                mail,
                sender=options.sender,
                recipients=list(way.to),
                hostname=options.host,
                sock=await open_socket(AddressPolicy.of(way.settings), options.host, port),
                username=options.user or None,
                password=way.secrets.get("password_secret") or None,
                use_tls=encryption == "tls",
                start_tls=encryption == "starttls",
                tls_context=None if encryption == "none" else tls_context(options.ca_certificate),
                timeout=_ANSWER_S,
            )
        except aiosmtplib.SMTPRecipientsRefused as error:
            said = "; ".join(f"{one.recipient}: {one.message}" for one in error.recipients)
            may_pass = all(400 <= one.code < 500 for one in error.recipients)
            raise ChannelFailed(f"no recipient was accepted: {said}", may_pass=may_pass) from error
        except aiosmtplib.SMTPAuthenticationError as error:
            raise ChannelFailed(f"signing in was refused: {error.message}") from error
        except aiosmtplib.SMTPResponseException as error:
            may_pass = not 500 <= error.code < 600
            raise ChannelFailed(f"{error.code} {error.message}", may_pass=may_pass) from error
        except AddressRefused as error:
            raise ChannelFailed(str(error), may_pass=False) from error
        except (aiosmtplib.SMTPException, OSError, ssl.SSLError) as error:
            raise ChannelFailed(f"{options.host}: {plainly(error)}") from error
        if refused:
            said = "; ".join(f"{name}: {code} {text}" for name, (code, text) in refused.items())
            return f"{answer}; not accepted: {said}"
        return answer


def compose(message: AlertMessage, sender: str, to: Sequence[str]) -> EmailMessage:
    """Return the mail. Header values are one line, whatever names hold."""
    mail = EmailMessage()
    mail["Subject"] = " ".join(message.subject.split())
    mail["From"] = Address("Shoal", addr_spec=sender)
    mail["To"] = ", ".join(to)
    mail["Date"] = formatdate()
    mail["Message-ID"] = f"<{message.key}@{sender.rpartition('@')[2]}>"
    mail["Importance"] = _IMPORTANCE[message.severity]
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(message.text)
    mail.add_alternative(message.html, subtype="html")
    for one in message.attachments:
        kind, _, subtype = one.media_type.partition("/")
        mail.add_attachment(one.content, kind, subtype, filename=one.name)
    return mail
