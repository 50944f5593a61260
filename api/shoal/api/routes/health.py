"""Is the process there, can the cluster do its work, and which items can it not work with?"""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from shoal.api.access.callers import Caller, Calling
from shoal.api.endpoints.guard import needs
from shoal.api.endpoints.route import BoundedRoute, strict_router
from shoal.api.operations.cluster.backlogs import find_backlogs, longest_steps
from shoal.api.operations.cluster.health import (
    ANSWER_S,
    differences,
    overdue,
    shortlist,
    troubles,
    unserved,
)
from shoal.api.operations.cluster.view import ClusterView
from shoal.api.schemas.common import Page
from shoal.api.schemas.platform.health import (
    Check,
    Checks,
    ClockDifference,
    Health,
    HealthFinding,
    Live,
    QuarantinedOut,
    QuarantinedRef,
    QuarantineOut,
)
from shoal.api.services import VERSION, ClusterDep, PastDep, SettingsDep, StoreDep
from shoal.api.settings import ApiSettings
from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.api.web.paging import Cursor, Limit, part_of
from shoal.api.web.problems import documented
from shoal.api.web.store import Store
from shoal.coordination import quarantine
from shoal.coordination.cluster.owners import in_words
from shoal.coordination.errors import CoordinationError
from shoal.coordination.session.nodes import SessionState
from shoal.core.access.permissions import Permission
from shoal.core.errors import ShoalError
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from shoal.core.runs.why.codes import HealthCode
from shoal.core.untrusted import read_count
from shoal.sql.errors import NotFound

NAMED = 10  # partitions
MOST_SHOWN = 20  # quarantined items
_LARGEST_ID = 2**63 - 1
_MOST = 10_000  # quarantined items that are listed
NOT_TOLD = "does not work; an administrator sees why"

# The only route without a token: it says nothing but that the process answers.
public = APIRouter(route_class=BoundedRoute, tags=["health"], responses=documented(422, 500))
router = strict_router("health")


@public.get("/health/live", summary="Is the process there?")
async def get_liveness() -> Live:
    """Answers as long as the process does; for supervisors. Needs no token."""
    return Live()


@router.get("/health", summary="State of the cluster")
@needs(Permission.SIGNED_IN)
async def get_health(
    store: StoreDep, cluster: ClusterDep, settings: SettingsDep, past: PastDep, caller: Calling
) -> Health:
    """The state of the cluster. The HTTP status is always 200; details need access to it."""
    return _as_seen(await _look(store, cluster, settings, is_exported=past.is_on), caller)


@router.get(
    "/health/ready",
    summary="Can requests be served?",
    responses={
        503: {
            "model": Health,
            "description": "Database or ZooKeeper cannot be reached, the database stores nothing, "
            "they belong to different clusters, or no partition has the owner in the database.",
        }
    },
)
@needs(Permission.SIGNED_IN)
async def get_readiness(
    store: StoreDep,
    cluster: ClusterDep,
    settings: SettingsDep,
    past: PastDep,
    caller: Calling,
    response: Response,
) -> Health:
    """As /health, with the HTTP status 503 while commands would be accepted in vain.

    That is while the database or ZooKeeper is away, while the database is read-only or full, while
    they are bound to different clusters, or while the database refuses the writes of the owners of
    all partitions.
    """
    found = await _look(store, cluster, settings, is_exported=past.is_on)
    is_stranded = len(cluster.ownership.with_two_owners()) == cluster.partitions
    if not (found.checks.database.ok and found.checks.zookeeper.ok) or is_stranded:
        response.status_code = 503
    return _as_seen(found, caller)


def _as_seen(found: Health, caller: Caller) -> Health:
    """Return what a caller sees: names of hosts and what servers say are for administrators."""
    if caller.may(Permission.CLUSTER_READ):
        return found
    plain = {
        name: Check(ok=check.ok, detail="works" if check.ok else NOT_TOLD)
        for name, check in (
            ("database", found.checks.database),
            ("zookeeper", found.checks.zookeeper),
            ("partitions", found.checks.partitions),
            ("commands", found.checks.commands),
            ("worker_groups", found.checks.worker_groups),
        )
    }
    return found.model_copy(
        update={
            "checks": found.checks.model_copy(update=plain),
            "master_troubles": [],
            "findings": [
                HealthFinding(code=one.code, arguments={}, text=NOT_TOLD) for one in found.findings
            ],
            "clock_differences": [],
            "longest_steps": [],
            "quarantine": found.quarantine and found.quarantine.model_copy(update={"newest": []}),
        }
    )


async def _look(
    store: Store, cluster: ClusterView, settings: ApiSettings, *, is_exported: bool
) -> Health:
    (stored, zookeeper, commands, groups), (quarantine, damaged, backlogs) = await asyncio.gather(
        asyncio.gather(
            _database(store),
            _zookeeper(cluster),
            overdue(store, cluster, settings.pending_limit_s),
            unserved(cluster, settings.pending_limit_s),
        ),
        asyncio.gather(
            _quarantined(store),
            _damaged_znodes(cluster),
            find_backlogs(store, cluster, settings, is_exported=is_exported),
        ),
    )
    set_aside, aside = quarantine
    partitions = _partitions(cluster)
    masters, workers = len(cluster.masters.current()), len(cluster.workers.current())
    paused = sum(1 for worker in cluster.workers.current().values() if worker.data.get("paused"))
    without_database = troubles(cluster.masters.current())
    failed = (
        (HealthCode.DATABASE, stored),
        (HealthCode.ZOOKEEPER, zookeeper),
        (HealthCode.PARTITIONS, partitions),
        (HealthCode.COMMANDS, commands),
        (HealthCode.WORKER_GROUPS, groups),
    )
    findings = [_finding(code, check.detail) for code, check in failed if not check.ok]
    if not masters:
        findings.append(_finding(HealthCode.NO_MASTER, "no master is running; start one"))
    if workers <= paused:
        text = "all workers are paused" if workers else "no worker is running; start one"
        findings.append(_finding(HealthCode.NO_WORKER, text, paused=paused))
    findings += [_finding(HealthCode.MASTER_DATABASE, text) for text in without_database]
    if aside and aside.held:
        text = f"{aside.held:,} quarantined items are tried again until they work"
        findings.append(_finding(HealthCode.QUARANTINED, text, held=aside.held))
    if aside and aside.skipped:
        text = f"{aside.skipped:,} quarantined items were skipped; retry or discard them"
        findings.append(_finding(HealthCode.SKIPPED, text, skipped=aside.skipped))
    findings += backlogs
    return Health(
        status="degraded" if findings else "ok",
        findings=findings,
        checks=Checks(
            database=stored,
            zookeeper=zookeeper,
            partitions=partitions,
            commands=commands,
            worker_groups=groups,
            masters=masters,
            workers=workers,
            paused_workers=paused,
            set_aside=set_aside,
            damaged_znodes=damaged,
        ),
        masters=masters,
        workers=workers,
        version=VERSION,
        master_troubles=without_database,
        quarantine=aside,
        clock_differences=[
            ClockDifference(clock=clock, ahead_s=by_s)
            for clock, by_s in differences(cluster).items()
        ],
        longest_steps=longest_steps(cluster),
    )


def _finding(code: HealthCode, text: str, **arguments: int) -> HealthFinding:
    return HealthFinding(code=code, arguments=dict(arguments), text=text)


async def _database(store: Store) -> Check:
    """Whether the database answers and stores: one that is read-only or full answers queries."""
    kind, step = store.database.kind, "did not answer"
    try:
        async with asyncio.timeout(ANSWER_S):
            await store.database.ping()
            step = "answers, but did not store a row"
            await store.database.check_writes()
    except TimeoutError:
        return Check(ok=False, detail=f"{kind} {step} within {ANSWER_S:g} s")
    except ShoalError as error:
        return Check(ok=False, detail=f"{kind}: {error}")
    return Check(ok=True, detail=f"{kind} answers and stores")


async def _quarantined(store: Store) -> tuple[int, QuarantineOut | None]:
    """Return how much masters have quarantined, and what all consumers have."""
    try:
        async with (
            asyncio.timeout(ANSWER_S),
            store.unit_of_work(read_only=True) as uow,
        ):
            counts = await uow.quarantine.counts()
            newest = await uow.quarantine.list(MOST_SHOWN) if counts else []
    except (ShoalError, TimeoutError):
        return 0, None  # the check of the database reports it
    of_masters = sum(count for (one, _), count in counts.items() if one == ItemConsumer.MASTERS)
    return of_masters, QuarantineOut(
        held=sum(count for (_, is_skipped), count in counts.items() if not is_skipped),
        skipped=sum(count for (_, is_skipped), count in counts.items() if is_skipped),
        newest=[quarantined_out(one) for one in newest],
    )


async def _zookeeper(cluster: ClusterView) -> Check:
    state = cluster.session.state
    if (foreign := cluster.ownership.foreign) is not None:
        tree, stored = foreign
        return Check(
            ok=False,
            detail=f"ZooKeeper at {cluster.session.address} is bound to cluster {tree.cluster} "
            f"(tree {tree.tree}), the database {stored.database} to cluster {stored.cluster} (tree "
            f"{stored.tree or 'none'} at {stored.address or 'an unknown address'}); check the "
            "settings `zookeeper` and `database_url` and restart this API",
        )
    return Check(ok=state is SessionState.CONNECTED, detail=state.value.lower())


def _partitions(cluster: ClusterView) -> Check:
    """The work of a partition without an owner, or with two, stands still."""
    watch, total = cluster.ownership, cluster.partitions
    unowned, differing = watch.without_owner(), watch.with_two_owners()
    troubles = []
    if unowned:
        troubles.append(
            f"{len(unowned)} of {total} partitions have had no owner for {watch.long_s:g} s or "
            f"more: {shortlist(unowned)}"
        )
    if differing:
        troubles.append(
            f"{len(differing)} of {total} partitions have had different owners in ZooKeeper and in "
            f"the database for {watch.long_s:g} s or more: {in_words(differing, NAMED)}"
        )
    if not troubles:
        return Check(ok=True, detail=f"{total} partitions are owned, or soon will be")
    return Check(ok=False, detail="; ".join(troubles))


async def _damaged_znodes(cluster: ClusterView) -> int | None:
    try:
        async with asyncio.timeout(ANSWER_S):
            return await quarantine.count(cluster.session)
    except (CoordinationError, TimeoutError):
        return None


# -- what is quarantined -------------------------------------------------------------------------


@router.get("/quarantine", summary="List quarantined items")
@needs(Permission.CLUSTER_READ)
async def list_quarantined_items(
    store: StoreDep,
    consumer: Annotated[
        ItemConsumer | None, Query(description="Only what this consumer cannot work with.")
    ] = None,
    kind: Annotated[ItemKind | None, Query(description="Only of this kind.")] = None,
    project: Annotated[
        str | None, Query(max_length=100, description="Only of this project.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Page[QuarantinedOut]:
    """What is quarantined, with the reasons; the item that failed last comes first."""
    async with store.unit_of_work(read_only=True) as uow:
        found = await uow.quarantine.list(_MOST, consumer, kind, project)
    items = sorted(map(quarantined_out, found), key=_key, reverse=True)
    some, following = part_of("quarantine", items, _key, limit, cursor, falling=True)
    return Page(items=some, next=following)


@router.post(
    "/quarantine-retries",
    summary="Try a quarantined item again",
    status_code=202,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.CLUSTER_OPERATE, audit="quarantine.retry")
async def retry_quarantined_item(
    store: StoreDep, body: Annotated[QuarantinedRef, Body()]
) -> QuarantinedOut:
    """Request a retry. The item leaves the list when it works, or stays with the new reason.

    A skipped event becomes the alerts that it would have become then. A message is sent again. A
    row of the history is exported with the next export, and a roll-up loaded with the next loading.
    """
    now = store.clock()
    async with store.unit_of_work() as uow:
        await uow.quarantine.request_retry(body.kind, body.item, body.consumer, now)
        found = await uow.quarantine.of(body.kind, body.item, body.consumer)
        if found is None:
            raise NotFound("quarantined item", body.item)
        number = _number(body)
        if body.kind is ItemKind.MESSAGE:
            await uow.deliveries.send_again(number, now)
            await uow.quarantine.discard(body.kind, body.item, body.consumer)
        elif body.kind is ItemKind.ALERT:
            await uow.alerts.put_off(number, now)
        await uow.commit()
    return quarantined_out(found)


@router.post(
    "/quarantine-discards",
    summary="Discard a quarantined item",
    status_code=204,
    responses=documented(400, 404, 413, 415),
)
@needs(Permission.CLUSTER_OPERATE, audit="quarantine.discard")
async def discard_quarantined_item(
    store: StoreDep, body: Annotated[QuarantinedRef, Body()]
) -> None:
    """Forget an item. An alert that is discarded sends no further reminders.

    Items of masters are what keeps a run, schedule or command from its work, and cannot be
    discarded.
    """
    if body.consumer is ItemConsumer.MASTERS:
        text = "items of masters cannot be discarded: repair the cause, then retry the item"
        raise InvalidRequest([FieldError("consumer", text)])
    async with store.unit_of_work() as uow:
        await uow.quarantine.discard(body.kind, body.item, body.consumer)
        if body.kind is ItemKind.ALERT:
            await uow.alerts.put_off(_number(body), None)
        await uow.commit()


def quarantined_out(one: QuarantinedItem) -> QuarantinedOut:
    """Return an item as it is answered."""
    return QuarantinedOut(**{**vars(one), "last_at": one.last_at or one.since})


def _key(one: QuarantinedOut) -> str:
    return f"{one.last_at.isoformat()} {one.consumer} {one.kind} {one.item}"


def _number(body: QuarantinedRef) -> int:
    """Return the id that an item is named by; 0: it is not named by one."""
    found = read_count(body.item)
    return found if found is not None and found <= _LARGEST_ID else 0
