"""Restrictions over REST: which projects may use worker groups and environments."""

from collections.abc import Collection, Iterator
from typing import cast

from shoal.client.errors import ApiProblem
from shoal.client.rest.access.types import RestrictedName, RestrictionJson
from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part


class RestrictionCalls:
    """The part of ``ShoalClient`` about restrictions, for administrators."""

    _connection: Connection

    def restrictions(self) -> Iterator[RestrictionJson]:
        """Yield what some projects alone may use, by kind and name."""
        return cast("Iterator[RestrictionJson]", self._connection.pages("/restrictions", {}))

    def put_restriction(
        self, kind: RestrictedName, name: str, projects: Collection[str]
    ) -> RestrictionJson:
        """Let these projects alone use it; none: no project may."""
        body = {"projects": [*projects]}
        return cast(RestrictionJson, self._connection.json("PUT", _path(kind, name), json=body))

    def change_restriction(
        self,
        kind: RestrictedName,
        name: str,
        *,
        add: Collection[str] = (),
        remove: Collection[str] = (),
    ) -> RestrictionJson:
        """Add projects to those that may use it, and remove others; what is open is closed then.

        Raises ApiProblem (412) if somebody has changed it meanwhile.
        """
        path = _path(kind, name)
        try:
            answer = self._connection.request("GET", path)
        except ApiProblem as problem:
            if problem.status != 404:
                raise
            before, headers = [], {"If-None-Match": "*"}
        else:
            before, headers = answer.json()["projects"], {"If-Match": answer.headers["etag"]}
        body = {"projects": sorted({*before, *add} - {*remove})}
        changed = self._connection.request("PUT", path, json=body, headers=headers, repeat=False)
        return cast(RestrictionJson, changed.json())

    def remove_restriction(self, kind: RestrictedName, name: str) -> None:
        """Let every project use it."""
        self._connection.request("DELETE", _path(kind, name))


def _path(kind: RestrictedName, name: str) -> str:
    return f"/restrictions/{part(kind)}/{part(name)}"
