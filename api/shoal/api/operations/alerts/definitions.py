"""Rules, receivers and channels: listed, shown, stored and deleted alike."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from shoal.api.endpoints.preconditions import Preconditions
from shoal.api.schemas.alerts import StoredDefinition
from shoal.api.schemas.common import Page
from shoal.api.web.answers import by_name, legible, shown
from shoal.api.web.errors import FieldError, InvalidRequest, TooManyRequests
from shoal.api.web.paging import decode_cursor, encode_cursor, page
from shoal.api.web.store import Store
from shoal.core.alerts.channels import UnknownChannel
from shoal.core.alerts.receivers import ChannelSpec
from shoal.core.alerts.records import DefinitionKind, StoredAlertDefinition
from shoal.core.alerts.rules import MessageTemplates
from shoal.core.errors import UnusablePlugin
from shoal.runtime.plugins import load_channel
from shoal.runtime.side.process import WAIT_S, NoTurn
from shoal.runtime.side.templates import TemplateError, Templates
from shoal.sql import UnitOfWork

O = TypeVar("O", bound=StoredDefinition)  # noqa: E741 - out


@dataclass(frozen=True)
class AlertDefinitionService(Generic[O]):
    """Those of one kind. ``spec`` checks what is stored, ``out`` is what callers get."""

    kind: DefinitionKind
    spec: type[BaseModel]
    out: type[O]

    async def page(self, store: Store, project: str, limit: int, cursor: str | None) -> Page[O]:
        """Return a page of them by name. Raises NotFound, InvalidRequest."""
        after = decode_cursor(self._plural, cursor, str)
        async with store.unit_of_work(read_only=True) as uow:
            await uow.projects.get(project)
            found = await uow.alert_definitions.list(
                project, self.kind, after[0] if after else None, limit + 1
            )
        items, more = page(found, limit)
        return Page(
            items=shown(self._noun, items, self._shown, by_name),
            next=encode_cursor(self._plural, items[-1].name) if more else None,
        )

    async def get(self, uow: UnitOfWork, project: str, name: str) -> O:
        """Return one. Raises NotFound, UnreadableRow."""
        found = await uow.alert_definitions.get(project, self.kind, name)
        with legible(self._noun, name):
            return self._shown(found)

    async def put(
        self,
        store: Store,
        project: str,
        name: str,
        spec: BaseModel,
        condition: Preconditions,
        check: Callable[[UnitOfWork], Awaitable[None]],
    ) -> O:
        """Store one if the condition holds, and ``check`` returns. Raises ApiError, NotFound."""
        wanted = spec.model_dump(mode="json")
        async with store.unit_of_work() as uow:
            await uow.projects.require(project)
            await condition.check(lambda: self.get(uow, project, name), {"spec": wanted})
            await check(uow)
            stored, is_new = await uow.alert_definitions.put(
                project, self.kind, name, wanted, store.clock()
            )
            await uow.commit()
        return condition.answer(self._shown(stored), is_new=is_new)

    async def delete(self, store: Store, project: str, name: str, condition: Preconditions) -> None:
        """Delete one if the condition holds. Raises ApiError, NotFound."""
        async with store.unit_of_work() as uow:
            await uow.projects.require(project)
            await condition.check(lambda: self.get(uow, project, name))
            await uow.alert_definitions.delete(project, self.kind, name)
            await uow.commit()

    @property
    def _noun(self) -> str:
        return f"alert {self.kind}"

    @property
    def _plural(self) -> str:
        return f"alert-{self.kind}s"

    def _shown(self, found: StoredAlertDefinition) -> O:
        return self.out(
            name=found.name,
            version=found.version,
            created_at=found.created_at,
            updated_at=found.updated_at,
            spec=self.spec.model_validate(found.spec).model_dump(mode="json"),
        )


async def require_usable(uow: UnitOfWork, project: str, channel: ChannelSpec) -> None:
    """Return if a channel's kind is installed, and takes its options. Raises InvalidRequest.

    Secrets that it names have to be there.
    """
    try:
        kind = await asyncio.to_thread(load_channel, channel.kind)
    except (UnknownChannel, UnusablePlugin) as error:
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


async def require_readable(templates: Templates, project: str, given: MessageTemplates) -> None:
    """Return if a rule's templates can be read. Raises InvalidRequest, TooManyRequests."""
    for field, template in (("subject", given.subject), ("text", given.text)):
        try:
            if template:
                await templates.check(project, template)
        except TemplateError as error:
            raise InvalidRequest([FieldError(f"templates.{field}", str(error))]) from None
        except NoTurn as error:
            raise TooManyRequests(str(error), WAIT_S) from None
