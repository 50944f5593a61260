"""Lists by any mix of filters, in any order: what a plain loop over all of them would find."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.runs.commands import Parent
from shoal.core.runs.events import Begun, StopRequested
from shoal.core.runs.filters import (
    MOST_COUNTED,
    Count,
    InstanceFilter,
    SortKey,
    SortOrder,
    TaskFilter,
)
from shoal.core.runs.records import Instance
from shoal.core.runs.run import Run
from shoal.core.runs.states import TaskState, WorkflowState
from shoal.sql import Database
from shoal.sql.errors import InvalidValue, NotFound, TooManyToSort
from shoal.sql.repositories.search import instances as searching
from tests.integration.sql.given import LATER, NOW, created, definition, published, stored

S, W = TaskState, WorkflowState
HOUR = timedelta(hours=1)
PAST, FUTURE = datetime(2020, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)


@pytest.fixture
async def runs(database: Database) -> list[Run]:
    """Runs of three workflows in two projects, of every kind that a filter tells apart."""
    found: list[Run] = []
    for number, (name, project) in enumerate((("a", "demo"), ("b", "demo"), ("a", "other"))):
        workflow_id = await published(database, definition(name, project=project))
        for i in range(4):
            made = await created(
                database,
                workflow_id,
                created_at=NOW + i * HOUR,
                logical_time=NOW - i * HOUR,
                priority=i % 2,
                schedule_id=7 if i == 1 else None,
                rerun_of=5 if i == 2 else None,
                deadline_at=(None, PAST, FUTURE, PAST)[i],
                labels={"team": f"t{i % 2}", **({"x": ""} if i > 1 else {})},
            )
            found += made
            if i != 3:
                await stored(database, made[0], Begun(NOW + i * HOUR + number * HOUR / 4))
            if i == 0:
                at = NOW + number * HOUR + HOUR / 2
                await stored(database, made[0], StopRequested(at, "50%_off is Over"))
    return found


_FILTERS: tuple[tuple[dict[str, Any], Callable[[Instance, dict[str, str]], bool]], ...] = (
    ({}, lambda i, labels: True),
    ({"project": "demo"}, lambda i, labels: i.project == "demo"),
    ({"workflow": "a"}, lambda i, labels: i.workflow == "a"),
    ({"project": "demo", "workflow": "a"}, lambda i, _: (i.project, i.workflow) == ("demo", "a")),
    ({"project": "nowhere"}, lambda i, labels: False),
    ({"state": frozenset({W.QUEUED})}, lambda i, labels: i.state is W.QUEUED),
    ({"label": ("team=t1",)}, lambda i, labels: labels["team"] == "t1"),
    ({"label": ("x",)}, lambda i, labels: "x" in labels),
    (
        {
            "label": (
                "team=t1",
                "x=",
            ),
            "project": "demo",
        },
        lambda i, labels: labels == {"team": "t1", "x": ""} and i.project == "demo",
    ),
    (
        {
            "label": (
                "x=",
                "team=t0",
            ),
            "workflow": "b",
        },
        lambda i, labels: labels == {"team": "t0", "x": ""} and i.workflow == "b",
    ),
    ({"label": ("team=nobody",)}, lambda i, labels: False),
    ({"schedule_id": 7}, lambda i, labels: i.schedule_id == 7),
    (
        {"schedule_id": 7, "label": ("team=t1",), "project": "other"},
        lambda i, labels: i.schedule_id == 7 and i.project == "other",
    ),
    ({"rerun_of": 5}, lambda i, labels: i.rerun_of == 5),
    ({"version": 2}, lambda i, labels: False),
    ({"priority": frozenset({"HIGH"})}, lambda i, labels: i.priority == 1),
    (
        {"since": NOW + HOUR, "until": NOW + 3 * HOUR, "label": ("team=t0",)},
        lambda i, labels: i.created_at == NOW + 2 * HOUR,
    ),
    (
        {"logical_since": NOW - HOUR, "state": frozenset({W.RUNNING, W.STOPPED})},
        lambda i, labels: i.logical_time >= NOW - HOUR and i.state is not W.QUEUED,
    ),
    (
        {"started_until": NOW + HOUR},
        lambda i, labels: i.started_at is not None and i.started_at < NOW + HOUR,
    ),
    (
        {"finished_since": NOW + HOUR},
        lambda i, labels: i.finished_at is not None and i.finished_at >= NOW + HOUR,
    ),
    (
        {"longest": 3600.0, "state": frozenset({W.STOPPED})},
        lambda i, labels: (
            bool(i.finished_at and i.started_at)
            and (i.finished_at or NOW) - (i.started_at or NOW) <= HOUR
        ),
    ),
    ({"late": True}, lambda i, labels: i.deadline_at == PAST),
    ({"late": False}, lambda i, labels: i.deadline_at != PAST),
    (
        {"late": True, "workflow": "a", "state": frozenset({W.QUEUED, W.STOPPED})},
        lambda i, labels: i.deadline_at == PAST and i.state is W.QUEUED and i.workflow == "a",
    ),
    ({"late": True, "state": frozenset({W.SUCCEEDED})}, lambda i, labels: False),
    ({"text": "50%_OFF"}, lambda i, labels: i.reason is not None),
    ({"text": "5x"}, lambda i, labels: False),
    ({"text": "B"}, lambda i, labels: i.workflow == "b"),
)


async def _everything(
    database: Database, wanted: InstanceFilter, order: SortOrder, limit: int, visible: Any = None
) -> list[int]:
    found: list[int] = []
    after = None
    async with database.unit_of_work(read_only=True) as uow:
        while True:
            page, after = await uow.instances.search(wanted, order, after, limit, visible)
            assert len(page) <= limit
            found += [one.id for one in page]
            if after is None:
                return found


async def test_filters_find_what_a_plain_loop_finds(
    database: Database, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "SIFTED", 3)  # so that pages end among what is sifted
    async with database.unit_of_work(read_only=True) as uow:
        known = await uow.instances.known([run.id for run in runs])
        labels = await uow.labels.of([run.id for run in runs])
        other = (await uow.projects.get("other")).id
    for fields, fits in _FILTERS:
        wanted = InstanceFilter(**fields)
        expected = [one for one in known if fits(one, labels[one.id])]
        expected.sort(key=lambda one: (one.created_at, one.id), reverse=True)
        ids = [one.id for one in expected]
        for limit in (1, 2, 50):
            assert await _everything(database, wanted, SortOrder(), limit) == ids, fields
        rising = await _everything(database, wanted, SortOrder(is_rising=True), 2)
        assert rising == ids[::-1], fields
        seen = await _everything(database, wanted, SortOrder(), 2, frozenset({other}))
        assert seen == [one.id for one in expected if one.project == "other"], fields
        async with database.unit_of_work(read_only=True) as uow:
            counts = await uow.instances.counted(wanted, None)
        if all(not one.is_more for one in counts.values()):
            assert sum(one.count for one in counts.values()) == len(ids), fields


@pytest.mark.parametrize("key", [k for k in SortKey if k is not SortKey.CREATED])
@pytest.mark.parametrize("is_rising", [False, True])
async def test_orders(database: Database, runs: list[Run], key: SortKey, is_rising: bool) -> None:
    async with database.unit_of_work(read_only=True) as uow:
        known = await uow.instances.known([run.id for run in runs])

    def value(one: Instance) -> Any:
        if key is SortKey.DURATION:
            long_ago = one.started_at and not one.finished_at  # runs: since March
            lasted = (one.finished_at or LATER) - one.started_at if one.started_at else None
            return None if lasted is None else (bool(long_ago), lasted if not long_ago else HOUR)
        return getattr(one, key)

    wanted = InstanceFilter()
    if key is SortKey.LOGICAL:
        wanted = InstanceFilter(project="demo", workflow="a", logical_since=NOW - 2 * HOUR)
        known = [o for o in known if o.project == "demo" and o.workflow == "a"]
        known = [o for o in known if o.logical_time >= NOW - 2 * HOUR]
    if key is SortKey.DURATION:
        known = [o for o in known if o.state is W.STOPPED]
        wanted = InstanceFilter(state=frozenset({W.STOPPED}))
    ranked = sorted(
        (o for o in known if value(o) is not None),
        key=lambda o: (value(o), o.id),
        reverse=not is_rising,
    )
    rest = sorted((o.id for o in known if value(o) is None), reverse=not is_rising)
    expected = [o.id for o in ranked] + rest
    for limit in (1, 5, 50):
        assert await _everything(database, wanted, SortOrder(key, is_rising), limit) == expected


async def test_too_many_are_not_sorted(
    database: Database, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MOST_RANKED", len(runs) - 1)
    with pytest.raises(TooManyToSort, match="narrow them"):
        await _everything(database, InstanceFilter(), SortOrder(SortKey.DURATION), 5)
    some = InstanceFilter(project="demo")
    assert len(await _everything(database, some, SortOrder(SortKey.DURATION), 5)) == 8


async def test_counts_stop_at_what_anybody_wants_to_know(
    database: Database, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with database.unit_of_work(read_only=True) as uow:
        counts = await uow.instances.counted(InstanceFilter(), None)
        assert counts[W.RUNNING] == Count(6)
        assert counts[W.STOPPED] == Count(3)
        assert counts[W.FAILED] == Count(0)
        monkeypatch.setattr(searching, "MOST_COUNTED", 4)
        counts = await uow.instances.counted(InstanceFilter(), None)
        assert counts[W.RUNNING] == Count(4, is_more=True)
        assert counts[W.STOPPED] == Count(3)
    assert MOST_COUNTED == 1_000


async def test_sub_workflows_are_found_by_the_instance_that_started_them(
    database: Database,
) -> None:
    spec = definition("outer")
    task = spec.tasks[0].model_copy(update={"type": "SUB_WORKFLOW"})
    spec = spec.model_copy(update={"tasks": (task, spec.tasks[1])})
    (outer,) = await created(database, await published(database, spec))
    parent = Parent(outer.id, outer.attempts["a"].id or 0, 0)
    inner = await published(database, definition("inner"))
    (child,) = await created(database, inner, parent=parent)
    await created(database, inner)
    assert await _everything(database, InstanceFilter(parent_id=outer.id), SortOrder(), 5) == [
        child.id
    ]
    assert await _everything(database, InstanceFilter(parent_id=child.id), SortOrder(), 5) == []


async def test_attempts_are_filtered_and_sorted(database: Database, runs: list[Run]) -> None:
    async def ids(order: SortOrder = SortOrder(), **fields: Any) -> list[int]:  # noqa: B008 - frozen
        found: list[int] = []
        after = None
        async with database.unit_of_work(read_only=True) as uow:
            while True:
                wanted = TaskFilter(**fields)
                page, after = await uow.tasks.search(wanted, order, after, 3)
                found += [one.id for one in page]
                if after is None:
                    return found

    of = {run.id: [a.id for a in run.attempts.values()] for run in runs}
    everything = sorted((i or 0 for some in of.values() for i in some), reverse=True)
    assert await ids() == everything
    assert await ids(SortOrder(is_rising=True)) == everything[::-1]
    assert await ids(instance_id=runs[1].id) == of[runs[1].id][::-1]
    assert (
        await ids(SortOrder(is_rising=True), instance_id=runs[1].id, task="a") == of[runs[1].id][:1]
    )
    assert await ids(type="PYTHON") == []
    assert await ids(worker_group="default", task="b") == [i for i in everything if not i % 2]
    labelled = [i for run in runs[1::2] for i in of[run.id]]
    assert await ids(label=("team=t1",)) == sorted((i or 0 for i in labelled), reverse=True)
    ended = await ids(SortOrder(SortKey.FINISHED), finished_since=NOW)
    assert ended == [i or 0 for run in runs[8::-4] for i in of[run.id][::-1]]
    async with database.unit_of_work(read_only=True) as uow:
        counts = await uow.tasks.counted(TaskFilter(project="other"), None)
    assert sum(one.count for one in counts.values()) == 8
    stopped = await ids(SortOrder(), state=frozenset({S.KILLED}), text="STOPPED")
    assert len(stopped) == 3 * counts[S.KILLED].count


async def test_labels_of_a_run_change(database: Database, runs: list[Run]) -> None:
    run = runs[2]
    async with database.unit_of_work() as uow:
        changed = await uow.labels.change(
            run.id, {"team": "t9", "x": None, "y": "", "z": None}, NOW
        )
        assert changed == {"team": "t9", "y": ""}
        [event] = (await uow.events.after(0, 10_000))[-1:]
        assert (event.kind, event.workflow_instance_id) == ("instance.labels", run.id)
        assert event.data["labels"] == changed
        assert await uow.labels.change(run.id, {"y": "", "z": None}, NOW) == changed  # nothing new
        assert (await uow.events.after(0, 10_000))[-1:] == [event]
        assert await uow.labels.of([run.id, 999]) == {run.id: changed}
        with pytest.raises(NotFound):
            await uow.labels.change(999, {"a": "b"}, NOW)
        with pytest.raises(InvalidValue, match="64 labels"):
            await uow.labels.change(run.id, {f"k{i}": "" for i in range(63)}, NOW)
        await uow.commit()
    wanted = InstanceFilter(label=("team=t9",))
    assert await _everything(database, wanted, SortOrder(), 5) == [run.id]


@pytest.mark.parametrize("column", ["started_at", "finished_at"])
async def test_impossible_time_spoils_the_duration_of_its_own_run_alone(
    database: Database, runs: list[Run], column: str
) -> None:
    never = "'infinity'" if database.kind == "postgresql" else str(2**62)
    bad = runs[0].id
    for table, key in (("workflow_instance", "id"), ("task_instance", "workflow_instance_id")):
        async with database.unit_of_work() as uow:
            await uow.connection.execute(
                text(f"UPDATE {table} SET {column} = {never} WHERE {key} = {bad}")
            )
            await uow.commit()

    order, others = SortOrder(SortKey.DURATION), {run.id for run in runs[1:]}
    found = await _everything(database, InstanceFilter(), order, 5)
    assert others <= set(found)
    lasting = await _everything(database, InstanceFilter(shortest_s=0), SortOrder(), 5)
    assert {run.id for run in runs[1:] if run.started_at is not None} <= set(lasting)
    async with database.unit_of_work(read_only=True) as uow:
        tasks, _ = await uow.tasks.search(TaskFilter(), order, None, 50)
    assert {task.workflow_instance_id for task in tasks} >= others
