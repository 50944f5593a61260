"""Roll-ups: a batch counts as a whole or not at all, and readers see what is theirs."""

import asyncio
import json
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, text, update

from shoal.sql import Database
from shoal.sql.errors import RollupTaken
from shoal.sql.repositories.insight.batches import Batch, NewBlock
from shoal.sql.repositories.insight.rollups import RollupBlock, RollupDay
from shoal.sql.schema.tables import rollup, rollup_batch
from tests.integration.sql.given import LATER, NOW

DAY = date(2026, 2, 27)
NEXT = DAY + timedelta(days=1)
LONG_AGO, SOON = NOW - timedelta(days=1), LATER + timedelta(days=1)


def block(name: str, *rows: dict[str, Any], place: int = 0) -> NewBlock:
    """Return a block of ``project/workflow``, or of no project."""
    project, _, workflow = name.partition("/")
    return NewBlock(project, workflow, place, json.dumps(rows))


async def written(
    database: Database, job: str, day: date, *blocks: NewBlock, digest: str = "d"
) -> Batch:
    """Write a batch and let it count."""
    batch = await begun(database, job, day, blocks)
    async with database.unit_of_work() as uow:
        await uow.rollup_batches.publish(batch, digest, len(blocks), LATER)
        await uow.commit()
    return batch


async def begun(database: Database, job: str, day: date, blocks: Sequence[NewBlock]) -> Batch:
    """Write a batch that does not count yet."""
    async with database.unit_of_work() as uow:
        before = await uow.rollup_batches.counting(job, day)
        batch = await uow.rollup_batches.begin(job, day, NOW, before)
        await uow.commit()
    async with database.unit_of_work() as uow:
        await uow.rollup_batches.add(batch, blocks, NOW)
        await uow.commit()
    return batch


async def read(database: Database, job: str, *days: date, **which: Any) -> list[RollupBlock]:
    """Return the blocks of workflows."""
    async with database.unit_of_work(read_only=True) as uow:
        return await uow.rollups.blocks(
            job, min(days), max(days), which.pop("visible", None), **which
        )


async def stored(database: Database) -> int:
    """Return how many blocks there are, whether they count or not."""
    async with database.unit_of_work(read_only=True) as uow:
        return int(await uow.connection.scalar(select(func.count()).select_from(rollup)))


async def cleaned(database: Database, most: int = 1) -> int:
    """Remove all that may go; return how many transactions that took."""
    steps = 0
    async with database.unit_of_work(read_only=True) as uow:
        batches = await uow.rollup_batches.abandoned(LONG_AGO)
    for batch in batches:
        there_is_more = True
        while there_is_more:
            async with database.unit_of_work() as uow:
                there_is_more = await uow.rollup_batches.remove_some(batch, LONG_AGO, most)
                await uow.commit()
            steps += 1
    return steps


async def test_rows_are_read_by_day_project_and_workflow(database: Database) -> None:
    await written(database, "costs", NEXT, block("b/w", {"cpu_s": 3.5}))
    await written(
        database,
        "costs",
        DAY,
        block("b/w", {"cpu_s": 1}, {"cpu_s": None}),
        block("b/w", {"cpu_s": 2}, place=1),
        block("a/ü 'w'", {"label": "é"}),
        block("", {"hour": 1}),
    )
    await written(database, "failures", DAY, block("b/w", {"count": 1}))
    of_b = RollupBlock(DAY, "b", "w", [{"cpu_s": 1}, {"cpu_s": None}, {"cpu_s": 2}])
    of_a = RollupBlock(DAY, "a", "ü 'w'", [{"label": "é"}])
    later = RollupBlock(NEXT, "b", "w", [{"cpu_s": 3.5}])
    assert await read(database, "costs", DAY, NEXT) == [of_a, of_b, later]
    assert await read(database, "costs", DAY) == [of_a, of_b]
    assert await read(database, "costs", DAY, NEXT, project="b", workflow="w") == [of_b, later]
    assert await read(database, "costs", DAY, NEXT, project="a", workflow="w") == []
    async with database.unit_of_work(read_only=True) as uow:
        names = [("a", "ü 'w'"), ("b", "v"), ("c", "w")]
        assert await uow.rollups.of_workflows("costs", DAY, names) == [of_a]
        assert await uow.rollups.of_workflows("costs", DAY, []) == []
        cluster = await uow.rollups.of_cluster("costs", DAY, NEXT)
        assert cluster == [RollupBlock(DAY, "", "", [{"hour": 1}])]


async def test_columns_and_values_are_rows_as_well(database: Database) -> None:
    short = NewBlock("a", "w", 0, '[["n","text"],[1,"é"],[null,""]]')
    await written(database, "costs", DAY, short, NewBlock("a", "w", 1, '[["n","text"]]'))
    [found] = await read(database, "costs", DAY)
    assert found.rows == [{"n": 1, "text": "é"}, {"n": None, "text": ""}]


async def test_aggregates_count_with_their_batch_and_are_no_rows(database: Database) -> None:
    def blocks(text: str) -> list[NewBlock]:
        parts = [NewBlock("", "", place, f'[["n"],["{text}",{place}]]') for place in (-1, -2)]
        return [*parts, block("a/w", {"n": text}), block("", {"hour": 1})]

    async def found() -> list[Any] | None:
        async with database.unit_of_work(read_only=True) as uow:
            return await uow.rollups.aggregates("costs", DAY)

    def parts(text: str) -> list[Any]:
        return [[["n"], [text, place]] for place in (-1, -2)]

    assert await found() is None
    await written(database, "costs", NEXT, *blocks("next"))
    await written(database, "failures", DAY, *blocks("other"))
    await written(database, "costs", DAY, *blocks("old"))
    batch = await begun(database, "costs", DAY, blocks("new"))
    assert await found() == parts("old")
    async with database.unit_of_work() as uow:
        await uow.rollup_batches.publish(batch, "d", 1, LATER)
        await uow.commit()
    assert await found() == parts("new")
    assert await read(database, "costs", DAY) == [RollupBlock(DAY, "a", "w", [{"n": "new"}])]
    async with database.unit_of_work(read_only=True) as uow:
        [cluster] = await uow.rollups.of_cluster("costs", DAY, DAY)
        assert cluster.rows == [{"hour": 1}]
        names = await uow.rollups.names("costs", DAY, None, 9, with_cluster=True)
        assert names == [("", ""), ("a", "w")]
        assert await uow.rollups.of_workflows("costs", DAY, [("", "")]) == [cluster]
    await cleaned(database)
    assert await stored(database) == 3 * 4
    async with database.unit_of_work() as uow:
        await uow.rollup_batches.forget("costs", DAY)
        await uow.commit()
    assert await found() is None
    await cleaned(database)
    assert await stored(database) == 2 * 4
    await written(database, "costs", DAY, block("a/w", {"n": 1}))
    assert await found() is None


async def test_reader_sees_projects_that_are_visible(database: Database) -> None:
    async with database.unit_of_work() as uow:
        ids = {name: (await uow.projects.hold(name, NOW)).id for name in ("a", "b")}
        await uow.commit()
    every = [block(f"{name}/w", {"runs": 1}) for name in ("a", "b", "gone")]
    await written(database, "costs", DAY, *every, block("", {"hour": 1}))

    async def seen(*visible: int) -> list[str]:
        found = await read(database, "costs", DAY, visible=frozenset(visible))
        return [one.project for one in found]

    assert await seen(ids["b"]) == ["b"]
    assert await seen(*ids.values()) == ["a", "b"]
    assert await seen() == []
    found = await read(database, "costs", DAY, visible=frozenset({ids["a"]}), project="b")
    assert found == []
    assert [one.project for one in await read(database, "costs", DAY)] == ["a", "b", "gone"]


async def test_many_workflows_are_one_question(database: Database) -> None:
    every = [(f"p{number % 7}", f"w{number}") for number in range(1_100)]
    blocks = [block(f"{project}/{workflow}", {"n": 1}) for project, workflow in every]
    await written(database, "baselines", DAY, *blocks)
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.rollups.of_workflows("baselines", DAY, every)
    assert sorted((one.project, one.workflow) for one in found) == sorted(every)


async def test_results_are_listed_newest_first(database: Database) -> None:
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.rollups.newest("costs") is None
        assert await uow.rollups.days() == []
    await written(database, "costs", DAY, digest="1")
    await written(database, "costs", NEXT, block("a/w"), digest="2")
    await written(database, "failures", NEXT, digest="3")
    async with database.unit_of_work(read_only=True) as uow:
        newest = RollupDay("costs", NEXT, 1, "2", LATER)
        assert await uow.rollups.newest("costs") == newest
        assert await uow.rollups.days("costs") == [newest, RollupDay("costs", DAY, 0, "1", LATER)]
        assert [(one.job, one.day) for one in await uow.rollups.days()] == [
            ("costs", NEXT),
            ("failures", NEXT),
            ("costs", DAY),
        ]


async def test_batch_counts_as_a_whole_and_the_old_one_goes_in_pieces(database: Database) -> None:
    old = [block(f"a/w{number}", {"old": number}) for number in range(5)]
    await written(database, "costs", DAY, *old)
    new = await begun(database, "costs", DAY, [block("a/w0", {"new": 0})])
    assert len(await read(database, "costs", DAY)) == 5
    async with database.unit_of_work() as uow:
        await uow.rollup_batches.publish(new, "n", 1, LATER)
        await uow.commit()
    assert await read(database, "costs", DAY) == [RollupBlock(DAY, "a", "w0", [{"new": 0}])]
    assert await stored(database) == 6
    assert await cleaned(database, most=2) == 3
    assert await stored(database) == 1
    assert await cleaned(database) == 0


async def test_batch_that_is_not_published_changes_nothing_and_is_removed(
    database: Database,
) -> None:
    await written(database, "costs", DAY, block("a/w", {"old": 1}))
    left = await begun(database, "costs", DAY, [block("a/w", {"new": 1})])
    assert await cleaned(database) == 0, "its writer may still live"
    async with database.unit_of_work() as uow:
        await uow.connection.execute(update(rollup_batch).values(touched_at=LONG_AGO))
        await uow.commit()
    async with database.unit_of_work() as uow:
        assert await uow.rollup_batches.abandoned(SOON) == [left.id]
        assert not await uow.rollup_batches.remove_some(left.id, SOON, 10)
        await uow.commit()
    assert await stored(database) == 1
    assert len(await read(database, "costs", DAY)) == 1
    async with database.unit_of_work() as uow:
        with pytest.raises(RollupTaken, match="costs of 2026-02-27"):
            await uow.rollup_batches.add(left, [block("a/v")], NOW)
    async with database.unit_of_work() as uow:
        with pytest.raises(RollupTaken):
            await uow.rollup_batches.publish(left, "n", 1, NOW)


async def test_batch_whose_removal_has_begun_never_counts(database: Database) -> None:
    left = await begun(database, "costs", DAY, [block(f"a/w{n}") for n in range(3)])
    async with database.unit_of_work() as uow:
        assert await uow.rollup_batches.remove_some(left.id, SOON, 1)
        await uow.commit()
    async with database.unit_of_work() as uow:
        with pytest.raises(RollupTaken):
            await uow.rollup_batches.add(left, [], NOW)
    async with database.unit_of_work() as uow:
        with pytest.raises(RollupTaken):
            await uow.rollup_batches.publish(left, "n", 3, NOW)
    assert await cleaned(database) == 3
    assert await stored(database) == 0


@pytest.mark.parametrize("has_old", [False, True])
async def test_of_two_writers_at_once_one_counts(database: Database, has_old: bool) -> None:
    if has_old:
        await written(database, "costs", DAY, block("a/w", {"by": "old"}))
    batches = [
        await begun(database, "costs", DAY, [block("a/w", {"by": number})]) for number in range(4)
    ]

    async def publish(batch: Batch) -> bool:
        async with database.unit_of_work() as uow:
            try:
                await uow.rollup_batches.publish(batch, str(batch.id), 1, LATER)
                await uow.commit()
            except RollupTaken:
                return False
            return True

    done = await asyncio.gather(*(publish(batch) for batch in batches))
    assert sum(done) == 1
    [found] = await read(database, "costs", DAY)
    assert found.rows == [{"by": done.index(True)}]
    async with database.unit_of_work(read_only=True) as uow:
        assert (await uow.rollups.days())[0].digest == str(batches[done.index(True)].id)


async def test_day_that_is_forgotten_is_not_read_any_more(database: Database) -> None:
    await written(database, "costs", DAY, block("a/w"))
    await written(database, "costs", NEXT, block("a/w"))
    for expected in (True, False):
        async with database.unit_of_work() as uow:
            assert await uow.rollup_batches.forget("costs", DAY) is expected
            await uow.commit()
    assert [one.day for one in await read(database, "costs", DAY, NEXT)] == [NEXT]
    assert await cleaned(database) == 2
    assert await stored(database) == 1


async def test_block_that_cannot_be_read_is_left_out(database: Database) -> None:
    await written(database, "costs", DAY, block("a/v", {"n": 1}), block("a/w", {"n": 1}))
    for junk in ('{"n": 1}', "[1]", '[["n", "m"], [1]]', '[["n"], 1]'):
        async with database.unit_of_work() as uow:
            change = text("UPDATE rollup SET body = :junk WHERE workflow = 'w'")
            await uow.connection.execute(change, {"junk": junk})
            await uow.commit()
        assert [one.workflow for one in await read(database, "costs", DAY)] == ["v"]
