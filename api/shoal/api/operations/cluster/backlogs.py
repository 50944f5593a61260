"""What lags behind in a cluster whose parts all answer: queue, alerts, export, purge, event loops.

Each has a limit in the settings of the API; 0 switches it off. Export and purge have two of their
own periods at least, which masters tell, and the time in which the cluster was switched off does
not count.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from shoal.api.operations.cluster.health import ANSWER_S
from shoal.api.operations.cluster.view import ClusterView
from shoal.api.schemas.platform.health import HealthFinding, LongestStep
from shoal.api.settings import ApiSettings
from shoal.api.web.store import Store
from shoal.core.errors import ShoalError
from shoal.core.runs.why.codes import HealthCode
from shoal.sql.repositories.exports.verified_history import Verified
from shoal.sql.repositories.upkeep.backlogs import QueuedTask

_LONGEST_REASON = 500  # characters
_MOST_STEPS = 20  # that are told
_LONGEST_S = 1e9


async def find_backlogs(
    store: Store, cluster: ClusterView, settings: ApiSettings, *, is_exported: bool
) -> list[HealthFinding]:
    """Return what lags behind by more than its limit; what the database knows only if it answers.

    ``is_exported``: this cluster exports its history.
    """
    now = cluster.clock()
    found = [
        *_late_loops(cluster, settings.loop_lag_limit_s),
        *_fenced(cluster),
        *_lost_commits(cluster),
    ]
    try:
        async with (
            asyncio.timeout(ANSWER_S),
            store.unit_of_work(read_only=True) as uow,
        ):
            queued = await uow.backlogs.oldest_queued()
            has_rules = await uow.backlogs.has_alert_rules()
            position = await uow.alert_jobs.position() if has_rules else None
            unread = None if position is None else await uow.backlogs.first_event_after(position)
            verified = await uow.verified_history.get() if is_exported else None
            purged_at = await uow.backlogs.purged_at()
    except (ShoalError, TimeoutError):
        return found  # the check of the database reports it
    found += _queued(queued, now, settings.queued_limit_s)
    found += _unread(unread, now, settings.alerts_lag_limit_s)
    found += _export(verified, cluster, now, settings.export_age_limit_s)
    found += _purge(purged_at, cluster, now, settings.purge_age_limit_s)
    return found


def _late_loops(cluster: ClusterView, limit_s: float) -> Iterator[HealthFinding]:
    lags: list[tuple[str, Any]] = [("this API process", round(cluster.lag.delays.recent_s, 1))]
    for kind, members in (("master", cluster.masters), ("worker", cluster.workers)):
        current = sorted(members.current().items())
        lags += [(f"{kind} {one_id}", one.data.get("loop_lag_s")) for one_id, one in current]
    for process, lag_s in lags:
        # Members' data can be anything, and an older version has nothing of this.
        lag_s = _seconds(lag_s)
        if limit_s and lag_s is not None and lag_s >= limit_s:
            yield HealthFinding(
                code=HealthCode.LOOP_LAG,
                arguments={"process": process, "lag_s": lag_s},
                text=f"{process} stood still for {lag_s:g} s or more within the last minute: "
                "everything in it was late. Its machine is overloaded, or something large is at "
                "work in it",
            )


def longest_steps(cluster: ClusterView) -> list[LongestStep]:
    """Return the longest steps of this process and of members that had noticeable ones."""
    own = cluster.lag.steps
    found = [
        LongestStep(
            process="this API process",
            recent_s=round(own.recent_s, 3),
            ever_s=round(own.ever_s, 3),
        )
    ]
    for kind, members in (("master", cluster.masters), ("worker", cluster.workers)):
        for member_id, member in sorted(members.current().items()):
            recent_s = _seconds(member.data.get("longest_step_s")) or 0.0
            ever_s = _seconds(member.data.get("longest_step_ever_s")) or 0.0
            if longest_s := max(recent_s, ever_s):
                process = f"{kind} {member_id}"
                found.append(LongestStep(process=process, recent_s=recent_s, ever_s=longest_s))
    return sorted(found, key=lambda one: -one.ever_s)[:_MOST_STEPS]


def _fenced(cluster: ClusterView) -> Iterator[HealthFinding]:
    for master_id, master in sorted(cluster.masters.current().items()):
        since = master.data.get("fenced_since")
        if isinstance(since, str) and since:
            yield HealthFinding(
                code=HealthCode.FENCED,
                arguments={"master": master_id, "since": since[:40]},
                text=f"the database has refused writes of master {master_id} for partitions that "
                f"it owns in ZooKeeper since {since[:40]}; if that lasts, restart this master",
            )


def _lost_commits(cluster: ClusterView) -> Iterator[HealthFinding]:
    said = (one.data.get("lost_commits_at") for one in cluster.masters.current().values())
    times = [at[:40] for at in said if isinstance(at, str) and at]
    if times:
        at = max(times)
        yield HealthFinding(
            code=HealthCode.LOST_COMMITS,
            arguments={"at": at},
            text=f"the database lacks commits that it had stored before {at}: an older copy or a "
            "replica that was behind has taken its place. Masters have moved the ids of new rows "
            "beyond the lost ones, and the log of a master says what is missing. Restart API and "
            "alert servers, and start again the runs that are missing",
        )


def _queued(oldest: QueuedTask | None, now: datetime, limit_s: float) -> Iterator[HealthFinding]:
    if oldest is None or not limit_s or (age_s := _age_s(oldest.since, now)) < limit_s:
        return
    yield HealthFinding(
        code=HealthCode.QUEUED,
        arguments={
            "task_instance": oldest.task_instance_id,
            "group": oldest.worker_group,
            "age_s": round(age_s),
        },
        text=f"task instance {oldest.task_instance_id} has waited in the queue of worker group "
        f"{oldest.worker_group} for {age_s:,.0f} s; start workers of the group, or free their "
        "slots",
    )


def _unread(first: datetime | None, now: datetime, limit_s: float) -> Iterator[HealthFinding]:
    if first is None or not limit_s or (age_s := _age_s(first, now)) < limit_s:
        return
    yield HealthFinding(
        code=HealthCode.ALERTS_LAG,
        arguments={"age_s": round(age_s)},
        text=f"alert servers have not read an event that is {age_s:,.0f} s old: no notification is "
        "sent about later events. Start an alert server, or read the log of the one that runs",
    )


def _export(
    verified: Verified | None, cluster: ClusterView, now: datetime, limit_s: float
) -> Iterator[HealthFinding]:
    if verified is None or not limit_s:
        return
    at = verified.verified_at if isinstance(verified.verified_at, datetime) else cluster.since
    age_s = _age_s(at, now)
    limit_s = max(limit_s, 2 * _period_s(cluster, "export_s"))
    is_late = _age_s(max(at, _on_since(cluster)), now) >= limit_s
    if verified.trouble is None and not is_late:
        return
    trouble = verified.trouble
    if not isinstance(trouble, str):  # none, or a value that cannot be read
        trouble = (
            "no export has been completed since; is there a master? The limits are "
            "export_age_limit_s and two export_interval_s"
        )
    yield HealthFinding(
        code=HealthCode.EXPORT_LAG,
        arguments={"age_s": round(age_s), "trouble": trouble[:_LONGEST_REASON]},
        text=f"the last complete export of the history was {age_s:,.0f} s ago, and the purge waits "
        f"for it: {trouble[:_LONGEST_REASON]}",
    )


def _purge(
    purged_at: datetime | None, cluster: ClusterView, now: datetime, limit_s: float
) -> Iterator[HealthFinding]:
    at = purged_at or cluster.since
    age_s = _age_s(at, now)
    longest_s = max(limit_s, 2 * _period_s(cluster, "purge_s"))
    if not limit_s or _age_s(max(at, _on_since(cluster)), now) < longest_s:
        return
    yield HealthFinding(
        code=HealthCode.PURGE_AGE,
        arguments={"age_s": round(age_s)},
        text=f"a partition was last purged {age_s:,.0f} s ago or more: the database grows. Read "
        "its master's log, and check the settings purge_hours and purge_cron of the masters, and "
        "purge_age_limit_s of the API",
    )


def _on_since(cluster: ClusterView) -> datetime:
    """Return since when the cluster has been at work, as far as its present processes know."""
    began = [cluster.since]
    for master in cluster.masters.current().values():
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            began.append(datetime.fromisoformat(master.data["started_at"]).astimezone(UTC))
        # Else an older version, or whatever members' data may hold.
    return min(began)


def _period_s(cluster: ClusterView, name: str) -> float:
    """Return the longest period that a master tells; 0: none does."""
    told = [master.data.get("periods") for master in cluster.masters.current().values()]
    found = [_seconds(one.get(name)) for one in told if isinstance(one, Mapping)]
    return max((one for one in found if one is not None), default=0.0)


def _seconds(value: Any) -> float | None:
    """Return a length of time from members' data, which can be anything; None: it is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value <= _LONGEST_S else None  # NaN is not, either


def _age_s(since: datetime, now: datetime) -> float:
    """Return how old something is; 0 if a wrong clock has dated it into the future."""
    return max((now - since).total_seconds(), 0.0)
