"""Views give the same answers by aggregates as by rows, and rows count where aggregates do not."""

import json
import random
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import delete, func, select, update

from shoal.api.operations.insight.day_results import DayCache
from shoal.core.insight.aggregates import COSTS, RUN_DAYS, TASK_DAYS
from shoal.core.insight.windows import DayWindow
from shoal.sql import Database
from shoal.sql.repositories.insight.batches import ARE_AGGREGATES
from shoal.sql.schema.tables import rollup
from shoal.sql.schema.types import JsonText
from tests.integration.api.conftest import PREFIX, Api
from tests.support.insight import rollups
from tests.support.insight.rollups import DAY, Blocks, cost, spread, task_day, workflow_day

WHOLE = (
    "summary",
    "summary?project=p",
    "summary?from=2026-01-29",
    "costs",
    "costs?by=project",
    "costs?by=label",
    "costs?project=ü",
    "costs?from=2026-01-31",
)
OF_SOME = (
    "summary?project=p&workflow=w1",
    "workflows?sort=slower",
    "workflows?sort=waits",
    "workflows?sort=cost",
    "workflows?sort=cost&project=q&limit=1",
    "costs?by=task&project=p",
    "costs?by=label&project=p&workflow=w1",
)


@pytest.fixture
def database(api: Api) -> Database:
    return api.services.store.database


async def answers(api: Api, *views: str) -> Mapping[str, Any]:
    """Return the answers of an API that has just started."""
    api.services.day_results.forget()
    found = {}
    for view in views:
        answer = await api.client.get(f"{PREFIX}/insight/{view}")
        assert answer.status_code == 200, answer.text
        found[view] = answer.json()
    return found


async def store(database: Database, results: Mapping[tuple[str, date], Blocks]) -> None:
    for (job, day), blocks in results.items():
        await rollups.store(database, job, day, blocks)


async def remove(database: Database, *, aggregates: bool) -> int:
    """Remove all aggregates, or all rows; return how many blocks there were."""
    which = ARE_AGGREGATES if aggregates else rollup.c.place >= 0
    async with database.unit_of_work() as uow:
        count = await uow.connection.scalar(select(func.count()).select_from(rollup).where(which))
        await uow.connection.execute(delete(rollup).where(which))
        await uow.commit()
    return int(count)


def made(seed: int) -> dict[tuple[str, date], Blocks]:
    """Return results as no table of made-up numbers would have them: gaps, zeros, odd names."""
    chance = random.Random(seed)
    names = [(project, f"w{number}") for project in ("p", "q", "ü 'x'", "ü") for number in range(5)]

    def some(most: float) -> float | None:
        return chance.choice([None, 0.0, chance.uniform(0, most), chance.lognormvariate(0, 9)])

    def runs() -> dict[str, Any]:
        count = chance.choice([0, 1, 7, 10**9])
        one = workflow_day(count, some(900), failed=min(count, chance.randrange(3)))
        return one | spread("admission", some(9)) | {"late": chance.randrange(2)}

    def task(name: str) -> dict[str, Any]:
        one = task_day(name, chance.randrange(4), retries=chance.randrange(3))
        one |= spread("duration", some(300), p95=some(900)) | spread("wait", some(30))
        return one | {
            "busy_s": some(1e6),
            "cpu_s": some(1e6),
            "max_rss_kb": chance.choice([None, 9]),
        }

    def costs(name: str) -> list[dict[str, Any]]:
        labels = [("", ""), ("team", "a"), ("team", "b"), ("tier", ""), ("", "odd"), ("ü", '"')]
        return [
            cost(name, some(1e5) or 0.0, *label) | {"cpu_s": some(1e4)}
            for label in chance.sample(labels, chance.randrange(1, 6))
        ]

    found: dict[tuple[str, date], Blocks] = {}
    for back in (0, 1, 2, 3, 5, 9, 27, 28, 40, 55):
        day = DAY - timedelta(days=back)
        tasks = [f"t{number}" for number in range(chance.randrange(1, 6))]
        there = sorted(chance.sample(names, chance.randrange(len(names) + 1)))
        found["workflow_days", day] = {name: [runs()] for name in there}
        found["task_days", day] = {name: [task(one) for one in tasks] for name in there}
        found["costs", day] = {name: [r for one in tasks for r in costs(one)] for name in there}
    return found


@pytest.mark.parametrize("seed", range(5))
async def test_aggregates_and_rows_give_the_same_answers(
    api: Api, database: Database, seed: int
) -> None:
    results = made(seed)
    await store(database, results)
    views = (*WHOLE, *OF_SOME)
    by_aggregates = await answers(api, *views)
    assert await remove(database, aggregates=True) >= len(results)
    assert await answers(api, *views) == by_aggregates
    # They are read indeed, and nothing else is where all workflows are asked about.
    await store(database, results)
    await remove(database, aggregates=False)
    assert await answers(api, *WHOLE) == {view: by_aggregates[view] for view in WHOLE}


async def damage(database: Database, place: int, body: str) -> None:
    """Let some aggregates have another body."""
    async with database.unit_of_work() as uow:
        which = (ARE_AGGREGATES, rollup.c.place == place)
        changed = await uow.connection.execute(
            update(rollup).where(*which).values(body=JsonText(body))
        )
        assert changed.rowcount >= 1
        await uow.commit()


_COLUMNS = {one.job: [*one.columns] for one in (RUN_DAYS, TASK_DAYS, COSTS)}


@pytest.mark.parametrize(
    "body",
    [
        "[",
        "{}",
        "[7]",
        "[]",  # what the loader writes if they cannot be had
        '[["project","workflow","of","another","version"]]',
        *(
            json.dumps([_COLUMNS["workflow_days"], *rows])
            for rows in ([["p", "w"]], [["p", "w", *"text" * 20]], [[1, *range(19)]])
        ),
    ],
)
async def test_aggregates_that_cannot_be_read_are_made_up_for_by_the_rows(
    api: Api, database: Database, body: str
) -> None:
    rows = {("p", "w"): [workflow_day(3)], ("q", "w"): [workflow_day(5)]}
    await rollups.store(database, "workflow_days", DAY, rows)
    await damage(database, -1, body)
    found = (await answers(api, "summary"))["summary"]
    assert found["total"]["runs"] == 8


async def test_aggregates_of_which_a_part_is_damaged_are_made_up_for_by_the_rows(
    api: Api, database: Database
) -> None:
    labels = [cost(label="team", value=f"{number:0200}") for number in range(2_000)]
    rows = {("p", "w"): [cost(slot_s=3.0), *labels], ("q", "w"): [cost(slot_s=5.0)]}
    await rollups.store(database, "costs", DAY, rows)
    await damage(database, -2, "[")
    found = (await answers(api, "costs"))["costs"]
    assert found["total"]["slot_s"] == 8.0
    assert len((await answers(api, "costs?by=label"))["costs?by=label"]["items"]) == 50


@pytest.mark.parametrize(
    ("is_whole", "most", "stays"),
    [
        pytest.param(True, 200, 1, id="whole days"),  # the one that was read last stays
        pytest.param(False, 1_000, 0, id="some workflows"),  # of which a quarter may be, all go
    ],
)
async def test_what_is_kept_has_a_bound_whatever_labels_there_are(
    database: Database, is_whole: bool, most: int, stays: int
) -> None:
    before = DAY - timedelta(days=1)
    name = ("p", "w")
    labels = [cost(label="run", value=str(number)) for number in range(300)]
    for day in (DAY, before):
        await rollups.store(database, "costs", day, {name: [cost(), *labels]})
    cache = DayCache(most)

    async def read(*days: date) -> dict[date, int]:
        """Return how many workflows there are of each day, one day after the other."""
        found = {}
        async with database.unit_of_work(read_only=True) as uow:
            for day in days:
                asked = DayWindow(day, day)
                if is_whole:
                    values = await cache.days(uow, COSTS, asked)
                else:
                    values = await cache.of(uow, COSTS, asked, [name])
                found[day] = len(values[day])
        return found

    assert await read(DAY, before) == {DAY: 1, before: 1}
    await remove(database, aggregates=True)
    await remove(database, aggregates=False)
    assert await read(before, DAY) == {before: stays, DAY: 0}


async def test_a_workflow_that_has_no_aggregate_is_missing_alone(
    api: Api, database: Database
) -> None:
    rows = {("p", "w"): [workflow_day(3)], ("q", "w"): [workflow_day(5) | {"late": None}]}
    await rollups.store(database, "workflow_days", DAY, rows)
    assert (await answers(api, "summary"))["summary"]["total"]["runs"] == 3
