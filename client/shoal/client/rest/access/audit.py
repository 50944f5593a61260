"""The audit over REST: who has done what."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypedDict, cast

from shoal.client.rest.connection import Connection
from shoal.client.rest.paths import part

_LINKS = 500  # of a request


class AuditEntryJson(TypedDict):
    id: int
    at: str
    action: str
    outcome: Literal["done", "refused"]
    principal_id: int | None
    principal: str
    address: str
    request_id: str
    project: str
    object: str
    detail: dict[str, Any]


class AuditLinkJson(TypedDict):
    position: int
    hash: str
    previous: str
    entry: AuditEntryJson | None


class AuditHeadJson(TypedDict):
    position: int
    hash: str
    pruned: int
    unlinked: int


class AuditPrunedJson(TypedDict):
    removed: int
    position: int
    hash: str


class AuditCalls:
    """The part of ``ShoalClient`` about the audit: for administrators, and owners of a project."""

    _connection: Connection

    def audit(
        self,
        project: str | None = None,
        wanted: Mapping[str, str | None] | None = None,
        *,
        of_project: bool = False,
    ) -> Iterator[AuditEntryJson]:
        """Yield entries, the newest first.

        ``of_project``: as an owner of ``project`` may. ``wanted``: ``principal``, ``action``,
        ``outcome``, ``request``, ``since``, ``until``.
        """
        if of_project and project is not None:
            yield from self._connection.pages(f"/projects/{part(project)}/audit", wanted or {})
        else:
            yield from self._connection.pages("/audit", {"project": project, **(wanted or {})})

    def audit_links(self, after: int = 0) -> Iterator[AuditLinkJson]:
        """Yield all entries with their hashes, the oldest first."""
        while found := self._connection.get("/audit-chain", {"after": after, "limit": _LINKS}):
            yield from found
            after = found[-1]["position"]

    def audit_head(self) -> AuditHeadJson:
        """Return the end of the chain."""
        return cast(AuditHeadJson, self._connection.get("/audit-head"))

    def prune_audit(self, before: str) -> AuditPrunedJson:
        """Remove some of the entries from before a moment; repeat it until ``removed`` is 0."""
        body = {"before": before}
        return cast(AuditPrunedJson, self._connection.json("POST", "/audit-prunes", json=body))
