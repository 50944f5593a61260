"""Callers of every kind, with their tokens, stored as they would be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shoal.api.access.sessions import COOKIE
from shoal.api.access.tokens import digest, new_session, new_token
from shoal.core.access.permissions import Permission, Role
from shoal.core.access.principals import EVERYTHING, PrincipalKind, TokenScope
from shoal.core.access.records import HolderKind, NewAccount
from shoal.sql import UnitOfWork
from tests.integration.api.access.table import HOLDS, PLATFORM

YEAR = timedelta(days=365)
#: No token that is limited to permissions has these: it would give more than it has.
GIVES_RIGHTS = frozenset({"project.manage", "user.manage"})


@dataclass(frozen=True)
class Person:
    """A caller, and what it ought to be able to do: said here, not read from the code."""

    name: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_known: bool = True
    is_admin: bool = False
    roles: Mapping[str, str] = field(default_factory=dict)
    permissions: frozenset[str] | None = None  # of its token
    projects: frozenset[str] | None = None  # of its token
    must_change: bool = False

    def sees(self, project: str) -> bool:
        """Say whether it may know what a project has."""
        return self.is_known and not self.must_change and self.has("project.read", project)

    def has(self, permission: str, project: str) -> bool:
        """Say whether it has a permission of a project."""
        if self.permissions is not None and permission not in self.permissions - GIVES_RIGHTS:
            return False
        if self.projects is not None and project not in self.projects:
            return False
        role = self.roles.get(project)
        return self.is_admin or (role is not None and permission in HOLDS[role])

    def expected(self, permission: str, project: str | None) -> int:
        """Return the status of a refusal, or 200 if there must be none.

        ``project``: what the request is about; None: it names nothing of a project.
        """
        if permission == "public":
            return 200
        if not self.is_known:
            return 401
        if permission == "signed-in":
            return 200
        if self.must_change:
            return 403
        if permission in PLATFORM:
            is_limited = (
                self.permissions is not None and permission not in self.permissions - GIVES_RIGHTS
            )
            return 200 if self.is_admin and self.projects is None and not is_limited else 403
        if project is None:
            return 200
        if not self.sees(project):
            return 404
        return 200 if self.has(permission, project) else 403


async def account(
    uow: UnitOfWork,
    name: str,
    at: datetime,
    roles: Mapping[str, str] | None = None,
    *,
    is_admin: bool = False,
    must_change: bool = False,
    password: str | None = None,
    of_project: str | None = None,
) -> int:
    """Store an account with its roles; return its id. ``password`` is a hash."""
    kind = PrincipalKind.USER if of_project is None else PrincipalKind.SERVICE_ACCOUNT
    home = None if of_project is None else (await uow.projects.get(of_project)).id
    new = NewAccount(
        kind,
        name,
        is_admin=is_admin,
        must_change_password=must_change,
        password=password,
        project_id=home,
    )
    found = await uow.principals.add(new, at)
    holder = HolderKind.USER if of_project is None else HolderKind.SERVICE_ACCOUNT
    for project, role in (roles or {}).items():
        project_id = (await uow.projects.get(project)).id
        await uow.members.put(project_id, holder, name, Role(role))
    return found.id


async def token(
    uow: UnitOfWork,
    principal_id: int,
    at: datetime,
    scope: TokenScope = EVERYTHING,
    lasts: timedelta | None = YEAR,
) -> tuple[int, str]:
    """Store a token; return its id and its text."""
    text = new_token()
    expires_at = None if lasts is None else at + lasts
    stored = await uow.tokens.add(principal_id, "t", digest(text), scope, at, expires_at)
    await uow.tokens.touch(stored.id, at)  # else the first use would
    return stored.id, text


async def session(
    uow: UnitOfWork, principal_id: int, at: datetime, lasts: timedelta = YEAR
) -> tuple[int, str]:
    """Store a session; return its id and what its cookie holds."""
    text = new_session()
    await uow.sessions.add(principal_id, digest(text), at, at + lasts, address="", agent="")
    [newest, *_] = await uow.sessions.list(principal_id, at)
    return newest.id, text


def bearer(text: str) -> dict[str, str]:
    """Return the headers of a program."""
    return {"Authorization": f"Bearer {text}"}


def browser(text: str) -> dict[str, str]:
    """Return the headers of a page of ours in a browser with a session."""
    return {"Cookie": f"{COOKIE}={text}", "Sec-Fetch-Site": "same-origin"}


async def scope_of(
    uow: UnitOfWork, permissions: frozenset[str] | None, projects: frozenset[str] | None
) -> TokenScope:
    """Return a token's limits from names."""
    ids = None
    if projects is not None:
        ids = frozenset([(await uow.projects.get(name)).id for name in projects])
    return TokenScope(None if permissions is None else frozenset(map(Permission, permissions)), ids)


async def people(uow: UnitOfWork, at: datetime, one: str, other: str) -> list[Person]:
    """Store callers of every kind around two projects; return them."""
    found = [Person("anonymous", is_known=False)]
    found.append(Person("garbage", bearer("shoal_pat_00_00000000"), is_known=False))
    found.append(Person("never issued", bearer(new_token()), is_known=False))
    everything = dict.fromkeys((one, other), "owner")

    async def add(name: str, roles: Mapping[str, str] | None = None, **more: object) -> Person:
        is_admin, must = bool(more.get("is_admin")), bool(more.get("must_change"))
        permissions, projects = more.get("permissions"), more.get("projects")
        assert permissions is None or isinstance(permissions, frozenset)
        assert projects is None or isinstance(projects, frozenset)
        made = await account(uow, name, at, roles, is_admin=is_admin, must_change=must)
        _, text = await token(uow, made, at, await scope_of(uow, permissions, projects))
        person = Person(
            name,
            bearer(text),
            is_admin=is_admin,
            roles=roles or {},
            permissions=permissions,
            projects=projects,
            must_change=must,
        )
        found.append(person)
        return person

    await add("stranger")
    for project in (one, other):
        for role in ("reader", "runner", "writer", "owner"):
            await add(f"{role}-{project}", {project: role})
    await add("boss", is_admin=True)
    await add("boss-of-other-alone", is_admin=True, projects=frozenset({other}))
    await add("boss-who-reads", is_admin=True, permissions=frozenset({"project.read"}))
    await add("owner-of-other-alone", everything, projects=frozenset({other}))
    await add("owner-who-reads", everything, permissions=frozenset({"project.read"}))
    await add("owner-for-nothing", everything, permissions=frozenset({"run.operate"}))
    await add("must-owner", everything, must_change=True)
    await add("must-boss", is_admin=True, must_change=True)

    bot = await account(uow, f"{one}/robot", at, {one: "runner"}, of_project=one)
    _, text = await token(uow, bot, at)
    found.append(Person("robot", bearer(text), roles={one: "runner"}))

    gone = await account(uow, "gone", at, everything)
    token_id, text = await token(uow, gone, at)
    await uow.tokens.revoke(gone, token_id, at)
    found.append(Person("revoked", bearer(text), is_known=False))
    _, text = await token(uow, gone, at - 2 * YEAR)
    found.append(Person("expired", bearer(text), is_known=False))
    _, text = await session(uow, gone, at - YEAR, timedelta(hours=1))
    found.append(Person("expired session", browser(text), is_known=False))
    off = await account(uow, "off", at, everything, is_admin=True)
    _, text = await token(uow, off, at)
    await uow.principals.disable(off, at)
    found.append(Person("disabled", bearer(text), is_known=False))

    writer = await account(uow, "browsing", at, {one: "writer"})
    _, text = await session(uow, writer, at)
    found.append(Person("browsing", browser(text), roles={one: "writer"}))
    crew = await account(uow, "by-group", at)
    await uow.groups.add("readers", "", at)
    await uow.groups.add_member("readers", crew)
    home = (await uow.projects.get(other)).id
    await uow.members.put(home, HolderKind.GROUP, "readers", Role.READER)
    _, text = await token(uow, crew, at)
    found.append(Person("by-group", bearer(text), roles={other: "reader"}))
    return found
