"""Conditions of the cluster: members that are gone, and what keeps it from its work."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from shoal.coordination import Members, ZkSession
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.membership import MemberInfo
from shoal.coordination.cluster.owners import Owners, disagreements, in_words
from shoal.coordination.session.nodes import SessionState
from shoal.core.alerts.occurrences import Trigger
from shoal.core.alerts.records import AlertCondition
from shoal.sql import Database, UnitOfWork

PARTS = ("partitions", "worker", "master", "quarantine", "answers", "certificate")
KINDS = {"worker": Trigger.WORKER_GONE, "master": Trigger.MASTER_GONE}

FORGET = timedelta(days=30)  # members that are gone
_SLOW_S = 1.0  # for the database or ZooKeeper to answer a trivial question
_SLOW_LOOKS = 3  # in a row, before an alert
_ENDING = timedelta(days=14)  # of a certificate
_NAMED = 10  # partitions
_NEWS = timedelta(hours=1)  # in which alerts about skipped items are degraded service

Problems = dict[str, str]  # what it is, as part of a subject; and the reason


class ClusterConditions:
    """Looks at the cluster. It keeps since when slow conditions hold."""

    def __init__(
        self,
        database: Database,
        session: ZkSession,
        workers: Members,
        masters: Members,
        certificate: Path | None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._database, self._session = database, session
        self._members = {"worker": workers, "master": masters}
        self._owners = Owners(session)
        self._certificate, self._clock = certificate, clock
        self._unowned: dict[int, float] = {}
        self._differing: dict[int, float] = {}
        self._slow = {"database": 0, "zookeeper": 0}

    @property
    def is_seen(self) -> bool:
        """Whether ZooKeeper can be asked now."""
        return self._session.state is SessionState.CONNECTED

    async def look(self, uow: UnitOfWork, part: str) -> Problems:
        """Return what keeps one of ``PARTS`` from its work. Raises CoordinationError, SqlError."""
        match part:
            case "partitions":
                return dict(await self._partitions(uow))
            case "worker" | "master":
                return dict(_of_members(self._members[part].current(), part))
            case "quarantine":
                return await _quarantine(uow, self._clock())
            case "answers":
                return {name: reason async for name, reason in self._slowness()}
            case _:
                ending = await asyncio.to_thread(self._ending)
                return {} if ending is None else {"certificate": ending}

    async def members(
        self, uow: UnitOfWork, kind: str, now: datetime
    ) -> tuple[Problems, dict[str, datetime | None], dict[str, bool]]:
        """Return the members that are gone, with reasons, and what is new about members.

        The third are all members that are known, and whether each is there. One that is gone for
        longer than ``FORGET`` is not known.
        """
        live = _names(kind, self._members[kind].current())
        known = {
            name: at
            for name, at in (await uow.alert_conditions.members(kind)).items()
            if at is None or at >= now - FORGET
        }
        changes: dict[str, datetime | None] = {}
        for name in live:
            if known.get(name, now) is not None:
                changes[name] = None
        changes |= {name: now for name, gone in known.items() if gone is None and name not in live}
        gone = {name: at for name, at in (known | changes).items() if at is not None}
        reasons = {
            name: f"{kind} {name} is gone since {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
            for name, at in gone.items()
        }
        return reasons, changes, {name: name not in gone for name in known | changes}

    async def _partitions(self, uow: UnitOfWork) -> list[tuple[str, str]]:
        rows = await uow.partitions.all()
        total = len(rows)
        owners = await self._owners.all_owners(total)
        differing = disagreements(owners, rows)
        now_s = time.monotonic()
        ownerless = [one for one in range(total) if one not in owners]
        self._unowned = {one: self._unowned.get(one, now_s) for one in ownerless}
        self._differing = {one: self._differing.get(one, now_s) for one in differing}
        found = []
        if lost := self._for_long(self._unowned, now_s):
            text = f"{len(lost)} of {total} partitions have no owner: {_listed(lost)}"
            found.append(("partitions", text))
        if lost := self._for_long(self._differing, now_s):
            named = in_words([differing[one] for one in lost], _NAMED)
            text = f"{len(lost)} of {total} partitions have two owners: {named}"
            found.append(("partition owners", text))
        return found

    def _for_long(self, since: Mapping[int, float], now_s: float) -> list[int]:
        long_s = self._session.timeout_s
        return sorted(one for one, at_s in since.items() if now_s - at_s >= long_s)

    async def _slowness(self) -> AsyncIterator[tuple[str, str]]:
        for name, question in (
            ("database", self._database.check_writes()),
            ("zookeeper", self._session.get(layout.CONFIG)),
        ):
            began = time.monotonic()
            await question
            took_s = time.monotonic() - began
            self._slow[name] = self._slow[name] + 1 if took_s >= _SLOW_S else 0
            if self._slow[name] >= _SLOW_LOOKS:
                yield name, f"{name} takes {took_s:.1f} s to answer"

    def _ending(self) -> str | None:
        """Return what is to be said of this node's certificate."""
        if self._certificate is None or not self._certificate.is_file():
            return None
        try:
            found = x509.load_pem_x509_certificate(self._certificate.read_bytes())
        except ValueError:
            return f"the certificate {self._certificate} cannot be read"
        ends = found.not_valid_after_utc
        if ends - datetime.now(UTC) > _ENDING:
            return None
        return f"the certificate {self._certificate} ends at {ends:%Y-%m-%d %H:%M} UTC"


def _listed(found: Sequence[object]) -> str:
    return ", ".join(map(str, found[:_NAMED])) + (", …" if len(found) > _NAMED else "")


def member_of(condition: AlertCondition) -> tuple[str, str] | None:
    """Return the kind and name of the member that is gone; None: the condition is another one."""
    for kind, trigger in KINDS.items():
        if condition.trigger is trigger:
            about = condition.subject.removeprefix(f"{trigger}/")
            return kind, about.removesuffix(f"/{condition.rule}")
    return None


def part_of(problem: str) -> str:
    """Return which of ``PARTS`` a problem is of, by the beginning of its name."""
    return {"database": "answers", "zookeeper": "answers", "skipped": "quarantine"}.get(
        problem, problem
    )


async def _quarantine(uow: UnitOfWork, now: datetime) -> Problems:
    found: Problems = {}
    held = sum(
        count
        for (_, is_skipped), count in (await uow.quarantine.counts()).items()
        if not is_skipped
    )
    if held:
        found["quarantine"] = f"{held} items are quarantined and wait for a repair"
    news = await uow.quarantine.counts(now - _NEWS)
    skipped = sum(count for (_, is_skipped), count in news.items() if is_skipped)
    if skipped:
        found["skipped"] = f"{skipped} items were skipped in the last hour: see `shoal status`"
    return found


def _names(kind: str, members: Mapping[str, MemberInfo]) -> set[str]:
    """Return the names of members; of several with one name the later ones have numbers."""
    counts = Counter(_name(kind, one) for one in members.values())
    return {
        name if number == 1 else f"{name} #{number}"
        for name, count in counts.items()
        for number in range(1, count + 1)
    }


def _name(kind: str, member: MemberInfo) -> str:
    """Return the name that a member comes back with: a restart changes its id."""
    host = str(member.data.get("host") or member.id)
    group = member.data.get("group")
    return f"{group}@{host}" if kind == "worker" and group else host


def _of_members(members: Mapping[str, MemberInfo], kind: str) -> Iterator[tuple[str, str]]:
    for one in members.values():
        name = _name(kind, one)
        if paused := one.data.get("paused"):
            yield f"{kind}/{name}", f"{kind} {name} takes no work: {paused}"
        said = one.data.get("database")
        if isinstance(said, Mapping) and said.get("answers") is False:
            yield f"{kind}/{name}", f"{kind} {name}: its database does not answer"
