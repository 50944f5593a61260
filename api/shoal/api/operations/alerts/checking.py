"""Whether definitions for alerts can be stored."""

import asyncio
from collections.abc import Iterable

from pydantic import ValidationError

from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.core.alerts.channels import UnknownChannel
from shoal.core.alerts.receivers import ChannelSpec
from shoal.core.alerts.records import DefinitionKind
from shoal.core.alerts.rules import MessageTemplates
from shoal.runtime.plugins import load_channel
from shoal.runtime.templates import TEMPLATES, TemplateError
from shoal.sql import UnitOfWork


async def require_usable(uow: UnitOfWork, project: str, channel: ChannelSpec) -> None:
    """Return if a channel's kind is installed, and takes its options. Raises InvalidRequest.

    Secrets that it names have to be there.
    """
    try:
        kind = await asyncio.to_thread(load_channel, channel.kind)
    except UnknownChannel as error:
        raise InvalidRequest([FieldError("kind", str(error))]) from None
    try:
        kind.Options.model_validate(channel.options)
    except ValidationError as error:
        raise InvalidRequest(
            [
                FieldError(".".join(map(str, ("options", *item["loc"]))), item["msg"])
                for item in error.errors(include_url=False, include_input=False)
            ]
        ) from None
    wanted = {
        key: name for key, name in channel.options.items() if key.endswith("_secret") and name
    }
    known = {one.name for one in await uow.secrets.list(project)} if wanted else set()
    if missing := [(key, name) for key, name in wanted.items() if name not in known]:
        raise InvalidRequest(
            [
                FieldError(f"options.{key}", f"the project has no secret {name}; set it first")
                for key, name in missing
            ]
        )


async def require_known(
    uow: UnitOfWork, project: str, kind: DefinitionKind, field: str, names: Iterable[str]
) -> None:
    """Return if a project has all definitions of these names. Raises InvalidRequest."""
    known = {one.name for one in await uow.alert_definitions.list(project, kind, limit=10_000)}
    if missing := sorted(set(names) - known):
        raise InvalidRequest(
            [FieldError(field, f"the project has no {kind} {name}") for name in missing]
        )


def require_readable(templates: MessageTemplates) -> None:
    """Return if templates can be read. Raises InvalidRequest."""
    for field, template in (("subject", templates.subject), ("text", templates.text)):
        try:
            TEMPLATES.check(template)
        except TemplateError as error:
            raise InvalidRequest([FieldError(f"templates.{field}", str(error))]) from None
