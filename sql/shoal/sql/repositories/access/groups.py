"""Groups of principals."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from shoal.core.access.principals import key_of
from shoal.core.access.records import UserGroup
from shoal.sql.driver.connection import Connection
from shoal.sql.errors import AccountExists, NotFound
from shoal.sql.repositories.access.rights import Rights
from shoal.sql.schema.access import group_member, principal, principal_group, project_role

_GroupList = list[UserGroup]
_Names = frozenset[str]
_KIND = "group"


class Groups:
    """The tables ``principal_group`` and ``group_member``."""

    def __init__(self, connection: Connection, rights: Rights) -> None:
        self._connection, self._rights = connection, rights

    async def add(self, name: str, description: str, at: datetime) -> UserGroup:
        """Make a group without members. Raises AccountExists."""
        await self._rights.changed()
        taken = select(principal_group.c.id).where(principal_group.c.key == key_of(name))
        if await self._connection.first(taken) is not None:
            raise AccountExists(name, "a group")
        await self._connection.execute(
            insert(principal_group).values(
                name=name, key=key_of(name), description=description, created_at=at
            )
        )
        return await self.get(name)

    async def get(self, name: str) -> UserGroup:
        """Return a group with its members. Raises NotFound."""
        query = select(principal_group).where(principal_group.c.key == key_of(name))
        row = await self._connection.first(query)
        if row is None:
            raise NotFound(_KIND, name)
        members = await self._members([row.id])
        return UserGroup(row.id, row.name, row.description, row.created_at, members[row.id])

    async def hold(self, name: str) -> UserGroup:
        """Return the same, unchanged by others until the commit. Raises NotFound."""
        query = select(principal_group.c.id).where(principal_group.c.key == key_of(name))
        await self._connection.execute(query.with_for_update(key_share=True))
        return await self.get(name)

    async def list(self, after: str | None = None, limit: int = 50) -> _GroupList:
        """Return groups by name, starting behind ``after``."""
        query = select(principal_group).order_by(principal_group.c.key).limit(limit)
        if after is not None:
            query = query.where(principal_group.c.key > key_of(after))
        rows = await self._connection.rows(query)
        members = await self._members([row.id for row in rows])
        return [
            UserGroup(row.id, row.name, row.description, row.created_at, members[row.id])
            for row in rows
        ]

    async def describe(self, name: str, description: str) -> None:
        """Change what a group is for. Raises NotFound."""
        found = await self._connection.execute(
            update(principal_group)
            .where(principal_group.c.key == key_of(name))
            .values(description=description)
        )
        if found.rowcount != 1:
            raise NotFound(_KIND, name)

    async def delete(self, name: str) -> None:
        """Forget a group, and the roles that it has. Raises NotFound."""
        await self._rights.changed()
        group = await self.get(name)
        for table in (project_role, group_member):
            await self._connection.execute(delete(table).where(table.c.group_id == group.id))
        await self._connection.execute(
            delete(principal_group).where(principal_group.c.id == group.id)
        )

    async def add_member(self, name: str, principal_id: int) -> bool:
        """Put a principal into a group; return whether it was not in it. Raises NotFound."""
        await self._rights.changed()
        group = await self.get(name)
        row = {"group_id": group.id, "principal_id": principal_id}
        c = group_member.c
        by_hand = update(group_member).where(c.group_id == group.id, c.principal_id == principal_id)
        if (await self._connection.execute(by_hand.values(of_issuer=False))).rowcount:
            return False
        await self._connection.execute(insert(group_member).values(row))
        return True

    async def remove_member(self, name: str, principal_id: int) -> None:
        """Take a principal out of a group. Raises NotFound."""
        await self._rights.changed()
        group = await self.get(name)
        found = await self._connection.execute(
            delete(group_member).where(
                group_member.c.group_id == group.id,
                group_member.c.principal_id == principal_id,
            )
        )
        if found.rowcount != 1:
            raise NotFound("member", f"{principal_id} of group {name}")

    async def set_of_issuer(self, principal_id: int, names: Collection[str]) -> _Names:
        """Make a principal a member of these groups by the word of its issuer, and of no others.

        Where it was put in by hand it stays. Returns names of groups that there are not.
        """
        c, g = group_member.c, principal_group.c
        keys = {key_of(name): name for name in names}
        rows = await self._connection.rows(select(g.id, g.key).where(g.key.in_(sorted(keys))))
        wanted = {row.id for row in rows}
        is_in = select(c.group_id, c.of_issuer).where(c.principal_id == principal_id)
        present = {row.group_id: row.of_issuer for row in await self._connection.rows(is_in)}
        gone = {one for one, of_issuer in present.items() if of_issuer} - wanted
        new = wanted - present.keys()
        if gone or new:
            await self._rights.changed()
        if gone:
            await self._connection.execute(
                delete(group_member).where(
                    c.principal_id == principal_id, c.group_id.in_(sorted(gone)), c.of_issuer
                )
            )
        for group_id in sorted(new):
            row = {"group_id": group_id, "principal_id": principal_id, "of_issuer": True}
            await self._connection.execute(insert(group_member).values(row))
        return frozenset(keys[one] for one in keys.keys() - {row.key for row in rows})

    async def _members(self, ids: Iterable[int]) -> defaultdict[int, tuple[str, ...]]:
        c = group_member.c
        rows = await self._connection.rows(
            select(c.group_id, principal.c.name)
            .join(principal)
            .where(c.group_id.in_(list(ids)))
            .order_by(principal.c.key)
        )
        found: defaultdict[int, tuple[str, ...]] = defaultdict(tuple)
        for row in rows:
            found[row.group_id] += (row.name,)
        return found
