"""The identity of a user at an issuer."""

from collections.abc import Mapping
from dataclasses import dataclass

LONGEST_SUBJECT = 255  # OpenID Connect Core 1.0, section 2


@dataclass(frozen=True)
class Identity:
    """Issuer and subject are the key: the rest may change, and may be another's tomorrow.

    ``name``: what an account would be called; None: the issuer gives no name. ``groups``: those of
    the issuer.
    """

    issuer: str
    subject: str
    name: str | None
    full_name: str
    groups: frozenset[str]


def is_subject(text: object) -> bool:
    """Say whether a text can be a subject: one that a database keeps as it is."""
    return (
        isinstance(text, str)
        and 0 < len(text) <= LONGEST_SUBJECT
        and text.isascii()
        and text.isprintable()
    )


@dataclass(frozen=True)
class IssuerRules:
    """What an issuer's word is good for here. ``groups``: its groups, and which of ours they are.

    ``make_accounts``: a person who has no account gets one.
    """

    make_accounts: bool
    groups: Mapping[str, str]

    def own_groups(self, identity: Identity) -> frozenset[str]:
        """Return the names of our groups that the issuer puts a user in."""
        return frozenset(ours for theirs, ours in self.groups.items() if theirs in identity.groups)
