"""What may come in floods is counted, not stored each time: refusals above all."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from shoal.core.access.audit.entries import NewEntry

PERIOD_S = 60.0
MOST_KINDS = 200  # of a period: what differs more is counted as one


@dataclass
class _Kind:
    latest: NewEntry
    until_s: float
    more: int = 0


@dataclass
class Throttle:
    """The first entry of a kind is due at once; those of the same period are one more entry.

    ``now_s`` is monotonic.
    """

    _kinds: dict[Hashable, _Kind] = field(default_factory=dict)
    _due: list[NewEntry] = field(default_factory=list)

    def add(self, entry: NewEntry, now_s: float) -> None:
        """Take an entry; its kind is all but time, object and detail."""
        e = entry
        kind: Hashable = (e.action, e.outcome, e.principal_id, e.principal, e.address, e.project)
        found = self._kinds.get(kind)
        if found is None and len(self._kinds) >= MOST_KINDS:
            kind, entry = "others", replace(entry, principal="", principal_id=None, address="")
            found = self._kinds.get(kind)
        if found is None or found.until_s <= now_s:
            if found is not None and found.more:
                self._due.append(_summary(found))
            self._kinds[kind] = _Kind(entry, now_s + PERIOD_S)
            self._due.append(entry)
        else:
            found.latest, found.more = entry, found.more + 1

    def take(self, now_s: float, *, everything: bool = False) -> list[NewEntry]:
        """Return what is due, each once."""
        for kind, found in list(self._kinds.items()):
            if found.until_s <= now_s or everything:
                if found.more:
                    self._due.append(_summary(found))
                del self._kinds[kind]
        due, self._due = self._due, []
        return due


def _summary(found: _Kind) -> NewEntry:
    return replace(found.latest, detail={**found.latest.detail, "count": found.more})
