"""The caller of a request: who it is, and whether it may do what it asks for."""

import asyncio
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import Depends, Request

from shoal.api.access.identities import Credential, Identities
from shoal.api.web.errors import Forbidden
from shoal.api.web.store import Store
from shoal.core.access.authorization import (
    AccessVerdict,
    Thing,
    Visible,
    is_unlimited,
    judge,
    visible,
)
from shoal.core.access.permissions import OF_PROJECT, Permission, roles_with
from shoal.core.access.principals import Principal
from shoal.insight.past.client import PastRuns
from shoal.sql import Database
from shoal.sql.errors import NotFound
from shoal.sql.repositories.access.rights import SignedIn


class HomeCache:
    """Which project things belong to, as far as it was asked; it never changes.

    Projects themselves are asked for each time: a name may be given anew.
    """

    MOST: ClassVar[int] = 50_000

    def __init__(self, database: Database, past: PastRuns) -> None:
        self._database, self._past = database, past
        self._known: dict[tuple[Thing, int | str], int] = {}

    async def load(self, thing: Thing, keys: Collection[int]) -> None:
        """Remember the projects of many things, looked up together."""
        unknown = [key for key in keys if (thing, key) not in self._known]
        if unknown:
            async with self._database.unit_of_work(read_only=True) as uow:
                found = await uow.homes.of_many(thing, unknown)
            if len(self._known) + len(found) >= self.MOST:
                self._known.clear()
            self._known.update({(thing, key): home for key, home in found.items()})

    async def of(self, thing: Thing, key: int | str) -> int | None:
        """Return the id of the project of a thing; None: there is none. Raises PastUnavailable."""
        if (found := self._known.get((thing, key))) is not None:
            return found
        named: tuple[Thing, int | str] = thing, key
        if thing is Thing.PAST_RUN:  # the history has the name of its project
            if (run := await self._past.run(int(key))) is None:
                return None
            named = Thing.PROJECT, str(run.row["project"])
        async with self._database.unit_of_work(read_only=True) as uow:
            found = await uow.homes.of(*named)
        if found is not None and thing is not Thing.PROJECT:
            if len(self._known) >= self.MOST:
                self._known.clear()
            self._known[thing, key] = found
        return found


@dataclass(frozen=True)
class Caller:
    """Who has sent a request."""

    signed_in: SignedIn
    credential: Credential
    identities: Identities
    homes: HomeCache

    @property
    def principal(self) -> Principal:
        """Who it is, with all rights."""
        return self.signed_in.principal

    @property
    def name(self) -> str:
        """What it is called: commands carry this name."""
        return self.principal.name

    @property
    def visible(self) -> Visible:
        """The ids of the projects whose things lists may show; None: of all."""
        return visible(self.principal)

    async def visible_names(self, store: Store) -> frozenset[str] | None:
        """Return the names of the projects whose things lists may show; None: of all."""
        if self.visible is None:
            return None
        async with store.unit_of_work(read_only=True) as uow:
            return await uow.projects.names(self.visible)

    async def look_up(self, thing: Thing, keys: Collection[int]) -> None:
        """Look the projects of many things up together, before each is judged by ``require``."""
        if not is_unlimited(self.principal):
            await self.homes.load(thing, keys)

    async def require(self, permission: Permission, thing: Thing, key: int | str) -> None:
        """Return if the caller has a permission of the project that a thing belongs to.

        Raises NotFound if the thing must stay hidden, with the words that say that there is none;
        Forbidden if the caller may see it, but not do this. Who may do everything gets past what
        there is not: the route says then what is missing, or makes it.
        """
        if is_unlimited(self.principal):
            return
        home = await self.homes.of(thing, key)
        verdict = judge(self.principal, permission, home)
        if verdict is AccessVerdict.HIDDEN:
            raise NotFound(thing, key)
        if verdict is AccessVerdict.FORBIDDEN:
            raise Forbidden(self._lacks(permission))

    async def require_there(self, thing: Thing, key: int | str) -> None:
        """Return if there is the thing. Raises NotFound.

        Of others than who may do everything ``require`` has found that out.
        """
        if is_unlimited(self.principal) and await self.homes.of(thing, key) is None:
            raise NotFound(thing, key)

    def require_of_platform(self, permission: Permission) -> None:
        """Return if the caller has a permission that is of no project. Raises Forbidden."""
        if not self.may(permission):
            raise Forbidden(self._lacks(permission))

    def require_own_password(self, permission: Permission) -> None:
        """Return unless the password has to be changed before anything else. Raises Forbidden."""
        if self.principal.must_change_password and permission is not Permission.SIGNED_IN:
            raise Forbidden(self._lacks(permission))

    def may(self, permission: Permission, project: int | None = None) -> bool:
        """Say whether the caller has a permission."""
        return judge(self.principal, permission, project) is AccessVerdict.ALLOWED

    def while_seeing_the_same(self) -> AbstractAsyncContextManager[asyncio.Event]:
        """Return a context whose event is set when other projects are visible than now."""
        now = self.visible
        return self.identities.watching(self.credential, lambda who: visible(who) == now)

    def while_reading(self, project: int | None) -> AbstractAsyncContextManager[asyncio.Event]:
        """Return a context whose event is set when the caller may no longer read a project."""
        return self.identities.watching(
            self.credential,
            lambda who: judge(who, Permission.PROJECT_READ, project) is AccessVerdict.ALLOWED,
        )

    def _lacks(self, permission: Permission) -> str:
        if self.principal.must_change_password:
            return f"{self.name} has to change the password first: PUT /api/v1/me/password"
        if permission in OF_PROJECT:
            roles = " or ".join(roles_with(permission))
            return (
                f"{self.name} has no permission {permission} in this project; it needs the role "
                f"{roles} there, which an owner of the project can give, and a token whose scope "
                "includes it"
            )
        return f"{self.name} has no permission {permission}: administrators have"


def caller_of(request: Request) -> Caller:
    """Return who has sent a request; the route has found it out."""
    found = request.state.caller
    assert isinstance(found, Caller)
    return found


async def _caller(request: Request) -> Caller:
    return caller_of(request)


Calling = Annotated[Caller, Depends(_caller)]
