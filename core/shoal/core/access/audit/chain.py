"""The chain: the hash of each entry is over its content and the hash of the entry before it.

So who changes, removes, adds or moves an entry has to make all hashes behind it anew, and then the
last one is not the noted one (the head).
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

GENESIS = "0" * 64
PRUNED = "audit.prune"  # the action of the entry that says up to where entries were removed
MOST_FINDINGS = 20


def link_hash(previous: str, document: Mapping[str, Any]) -> str:
    """Return the hash of an entry (hex) behind the one whose hash is ``previous``."""
    content = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(f"{previous}\n{content}".encode()).hexdigest()


@dataclass(frozen=True)
class ChainHead:
    """A place of the chain with its hash: who has noted it can prove what is before it."""

    position: int
    hash: str

    def __str__(self) -> str:
        """Return what ``parse`` reads."""
        return f"{self.position}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> "ChainHead":
        """Return the head that ``text`` is. Raises ValueError."""
        position, _, hashed = text.strip().partition(":")
        if not position.isdecimal() or len(hashed) != len(GENESIS):
            raise ValueError(
                f"{text[:100]!r} is not a head: POSITION:HASH, as `audit verify` prints"
            )
        return cls(int(position), hashed.lower())


class Verifier:
    """Reads links in order, and finds what does not fit."""

    def __init__(self, known: Iterable[ChainHead] = ()) -> None:
        self.findings: list[str] = []
        self.count = 0
        self.head: ChainHead | None = None
        self._known = {one.position: one for one in known}
        self._start: ChainHead | None = (
            None  # what the first link says it follows, if it is not the 1st
        )
        self._pruned: set[ChainHead] = set()

    def read(self, link: Mapping[str, Any]) -> None:
        """Read one link: ``position``, ``hash``, ``previous`` and ``entry`` (None: missing)."""
        position, hashed, entry = link["position"], link["hash"], link["entry"]
        before = self.head
        if before is None:
            before = ChainHead(position - 1, GENESIS if position == 1 else link["previous"])
            self._start = None if position == 1 else before
        elif position != before.position + 1:
            self._find(f"after position {before.position} comes {position}")
        if entry is None:
            self._find(f"position {position}: its entry is missing")
        elif link_hash(before.hash, entry) != hashed:
            self._find(f"position {position} (entry {entry.get('id')}): the hash does not fit")
        elif entry["action"] == PRUNED:
            self._pruned.add(ChainHead(entry["detail"]["position"], entry["detail"]["hash"]))
        known = self._known.pop(position, None)
        if known is not None and known.hash != hashed:
            self._find(f"position {position} has another hash than the head that was noted")
        self.head, self.count = ChainHead(position, hashed), self.count + 1

    def end(self) -> list[str]:
        """Return all findings, now that the last link was read."""
        if self._start is not None and self._start not in self._pruned:
            self._find(
                f"the chain begins behind position {self._start.position}, and no entry {PRUNED} "
                "says that what was before it was removed"
            )
        last = self.head.position if self.head else 0
        for one in self._known.values():
            if one.position > last:
                self._find(f"it ends at position {last}: the head that was noted is {one.position}")
            elif ChainHead(one.position, one.hash) not in {self._start, *self._pruned}:
                self._find(f"position {one.position}, which was noted, is missing")
        return self.findings

    def _find(self, text: str) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(text)
