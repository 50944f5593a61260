"""Which cluster owns the resources' objects whose names hold no cluster, as earlier versions wrote.

The copy of a database names the same objects as the original, and neither can tell from its rows
which of them it is. So each cluster says what it claims, in an object of its own that no other
cluster writes: ``.owners/CLUSTER``, the names that its rows had, in lines below the time of the
claim. An object is a cluster's to remove if

- the cluster claims it, and has for ``SETTLED``, and
- no other cluster claims it.

What another cluster has claimed for that long already is not claimed again. What two clusters claim
nobody removes: an administrator deletes the claim of the copy. Nothing here needs a storage that
creates atomically or lists what was written a moment ago: claims that are made at the same time are
both there long before one of them counts. Everything blocks.
"""

import io
import re
from collections.abc import Collection, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from shoal.runtime.storage import RESOURCES, ObjectMissing, Purpose, Storage, cluster_folder

log = structlog.get_logger()

FOLDER = ".owners"
#: As long as a copy may be tried out beside an original of a version that claims nothing.
SETTLED = timedelta(days=30)
_NAME = re.compile(r"[0-9a-f]{32}")
_CLAIMS = Purpose(
    "claims to resources", "resources_url", re.compile(rf"{re.escape(FOLDER)}/{_NAME.pattern}")
)


@dataclass(frozen=True)
class Claim:
    """What one cluster claims, and since when."""

    since: datetime
    objects: Set[str]

    def is_settled(self, now: datetime) -> bool:
        """Whether it has stood for long enough to count."""
        return now - self.since >= SETTLED

    def to_bytes(self) -> bytes:
        """Return the content of its object."""
        return "\n".join((self.since.isoformat(), *sorted(self.objects))).encode()

    @classmethod
    def from_bytes(cls, content: bytes, now: datetime) -> "Claim":
        """Read it. If its time cannot be read, it has just been made: it keeps others off."""
        first, *objects = content.decode("utf-8", "replace").split("\n")
        try:
            since = datetime.fromisoformat(first).astimezone(UTC)
        except ValueError:
            since = now
        return cls(since, {one for one in objects if RESOURCES.names.fullmatch(one)})


class ObjectClaims:
    """The claims in the storage of resources at ``url``, for the cluster with this uid."""

    def __init__(self, url: str, cluster: str) -> None:
        self._storage = Storage(url, _CLAIMS)
        self._own = cluster_folder(cluster)

    def held(self, known: Collection[str], now: datetime) -> Set[str]:
        """Return those of the objects that are this cluster's to remove; claim all that may be.

        ``known``: all names without a cluster that the database has made. Raises StorageError.
        """
        claims = self._read(now)
        own = claims.pop(self._own, None)
        taken = {one for claim in claims.values() if claim.is_settled(now) for one in claim.objects}
        wanted = set(known) - taken
        if wanted and (own is None or not wanted <= own.objects):
            self._write(Claim(now, wanted))
            return set()
        if own is None or not own.is_settled(now):
            return set()
        others = {one for claim in claims.values() for one in claim.objects}
        if contested := own.objects & set(known) & others:
            log.warning(
                "resources are not removed: another cluster claims them, too; delete the claim of "
                "the copy",
                count=len(contested),
                claims=f"{self._storage.url}/{FOLDER}",
                own=self._own,
            )
        return wanted - others

    def _read(self, now: datetime) -> dict[str, Claim]:
        """Return the claims there are, by the folder of their cluster."""
        found = {}
        for name in self._storage.names_in(FOLDER):
            if _NAME.fullmatch(name):
                path = f"{FOLDER}/{name}"
                try:
                    content = self._storage.read_range(path, 0, self._storage.size(path))
                except ObjectMissing:  # it has just been deleted
                    continue
                found[name] = Claim.from_bytes(content, now)
        return found

    def _write(self, claim: Claim) -> None:
        self._storage.put(f"{FOLDER}/{self._own}", io.BytesIO(claim.to_bytes()))
        log.info(
            "resources of earlier versions are claimed; old ones are removed when that has stood "
            "for a while",
            count=len(claim.objects),
            days=SETTLED.days,
        )
