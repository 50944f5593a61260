"""Principals: who asks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from shoal.core.access.permissions import Permission, Role


class PrincipalKind(StrEnum):
    """What a principal is."""

    USER = "USER"  # a person
    SERVICE_ACCOUNT = "SERVICE_ACCOUNT"  # a program; it signs in with tokens alone
    # Who holds the token of the data folder: an administrator, whatever the database says.
    BREAK_GLASS = "BREAK_GLASS"


@dataclass(frozen=True)
class TokenScope:
    """What a token is limited to. Its owner's present rights limit it as well.

    ``projects`` holds ids. None: all that the owner may.
    """

    permissions: frozenset[Permission] | None = None
    projects: frozenset[int] | None = None

    @property
    def is_of_platform(self) -> bool:
        """Whether it reaches beyond single projects."""
        return self.projects is None


EVERYTHING = TokenScope()


@dataclass(frozen=True)
class Principal:
    """Who asks, with all rights that count now.

    ``id`` is None for who holds the token of the data folder. ``roles`` are by project id, those
    of the principal's groups included.
    """

    id: int | None
    name: str
    kind: PrincipalKind
    is_admin: bool = False
    roles: Mapping[int, Role] = field(default_factory=dict)
    scope: TokenScope = EVERYTHING
    must_change_password: bool = False


#: Who holds the token of the data folder.
BREAK_GLASS_NAME = "break-glass"
#: Names that no account may have: commands of Shoal's own are asked for by these.
RESERVED_NAMES = frozenset(
    {BREAK_GLASS_NAME, "api", "backfill", "overlap", "schedule", "shoal", "sub-workflow"}
)
BREAK_GLASS = Principal(None, BREAK_GLASS_NAME, PrincipalKind.BREAK_GLASS, is_admin=True)


def key_of(name: str) -> str:
    """Return what names are compared by: two that differ in case alone are the same."""
    return name.casefold()
