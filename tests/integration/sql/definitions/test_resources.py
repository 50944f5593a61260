"""Resources of projects: versions, what counted when, what may go; also of changes at once."""

import asyncio
import hashlib
import uuid
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import text, update

from shoal.core.access.grants import EVERY_PROJECT
from shoal.core.runs.commands import CommandType, NewCommand
from shoal.sql import Database
from shoal.sql.errors import (
    IntegrityViolated,
    NotFound,
    PathTaken,
    ProjectFull,
    ResourceChanged,
    UnreadableRow,
    UploadExpired,
)
from shoal.sql.repositories.definitions.resources import PendingUpload, StoredResource
from shoal.sql.schema.tables import command, workflow_instance
from tests.integration.sql.given import LATER, created, definition, published

DAY = timedelta(days=1)
MOST = 1_000


def at(seconds: float) -> datetime:
    return LATER + timedelta(seconds=seconds)


async def begin(database: Database, path: str, seconds: float = 0) -> PendingUpload:
    async with database.unit_of_work() as uow:
        upload = await uow.resources.begin("demo", path, f"demo/{uuid.uuid4().hex}", at(seconds))
        await uow.commit()
    return upload


async def complete(
    database: Database,
    upload: PendingUpload,
    content: str,
    seconds: float,
    expected: int | None = None,
) -> tuple[StoredResource, bool]:
    digest = hashlib.sha256(content.encode()).hexdigest()
    async with database.unit_of_work() as uow:
        done = await uow.resources.complete(
            upload, digest, len(content), at(seconds), most=MOST, expected=expected
        )
        await uow.commit()
    return done


async def put(
    database: Database, path: str, content: str, seconds: float = 0, expected: int | None = None
) -> tuple[StoredResource, bool]:
    upload = await begin(database, path, seconds)
    return await complete(database, upload, content, seconds, expected)


async def remove(database: Database, path: str, seconds: float, *, is_folder: bool = False) -> int:
    async with database.unit_of_work() as uow:
        count = await uow.resources.delete("demo", path, at(seconds), is_folder=is_folder)
        await uow.commit()
    return count


async def counted(database: Database, paths: list[str], seconds: float) -> dict[str, int]:
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.resources.files_at("demo", paths, at(seconds))
    return {one.path: one.version for one in found}


async def unneeded(
    database: Database, seconds: float, ended: float | None = None, newest: int = 1
) -> list[str]:
    async with database.unit_of_work(read_only=True) as uow:
        found = await uow.resources.unneeded(
            uploads=at(seconds) - DAY,
            ended=None if ended is None else at(ended),
            newest=newest,
            limit=100,
        )
    return [one.object for one in found]


async def change_runs(database: Database, **values: Any) -> None:
    """Change all runs in the database."""
    async with database.unit_of_work() as uow:
        await uow.connection.execute(update(workflow_instance).values(values))
        await uow.commit()


async def test_each_content_is_a_version_of_its_own_and_the_same_one_is_none(
    database: Database,
) -> None:
    first, is_new = await put(database, "etl/a.py", "one", 1)
    assert is_new
    assert (first.project, first.path, first.version, first.size) == ("demo", "etl/a.py", 1, 3)
    again, is_new = await put(database, "etl/a.py", "one", 2)
    assert (again, is_new) == (first, False)
    second, is_new = await put(database, "etl/a.py", "two", 3)
    assert (second.version, is_new) == (2, True)
    async with database.unit_of_work(read_only=True) as uow:
        versions = await uow.resources.versions("demo", "etl/a.py")
        assert [one.version for one in versions] == [2, 1]
        assert versions[1].ended_at == second.created_at
        older = await uow.resources.versions("demo", "etl/a.py", below=2)
        assert [one.version for one in older] == [1]
        assert (await uow.resources.get("demo", "etl/a.py")).version == 2
        assert (await uow.resources.get("demo", "etl/a.py", 1)).sha256 == first.sha256
        with pytest.raises(NotFound, match=r"demo/etl/a\.py@3"):
            await uow.resources.get("demo", "etl/a.py", 3)
        assert await uow.resources.bytes_taken("demo") == 6


async def test_what_counts_is_what_was_there_at_that_moment(database: Database) -> None:
    await put(database, "a", "one", 10)
    await put(database, "a", "two", 20)
    await remove(database, "a", 30)
    await put(database, "a", "three", 40)
    for seconds, version in ((9, None), (10, 1), (19, 1), (20, 2), (29, 2), (30, None), (40, 3)):
        expected = {} if version is None else {"a": version}
        assert await counted(database, ["a", "b"], seconds) == expected


async def test_clock_that_is_behind_makes_no_version_older_than_the_one_before(
    database: Database,
) -> None:
    first, _ = await put(database, "a", "one", 10)
    second, _ = await put(database, "a", "two", 5)
    assert second.created_at > first.created_at
    assert await counted(database, ["a"], 11) == {"a": 2}


async def test_folder_has_what_lies_below_it_and_nothing_beside_it(database: Database) -> None:
    for path in ("etl/b", "etl/a", "etl/deep/c", "etl2", "ETL/x", "other/etl/a"):
        await put(database, path, path, 1)
    async with database.unit_of_work(read_only=True) as uow:
        below = await uow.resources.folder_at("demo", "etl", at(1), 10)
        assert sorted(one.path for one in below) == ["etl/a", "etl/b", "etl/deep/c"]
        listed = await uow.resources.list("demo", "etl")
        assert sorted(one.path for one in listed) == ["etl/a", "etl/b", "etl/deep/c"]
        everything = await uow.resources.list("demo")
        assert len(everything) == 6
        behind = await uow.resources.list("demo", after=everything[2].path)
        assert behind == everything[3:]
        assert await uow.resources.list("else") == []
    assert await remove(database, "etl", 2, is_folder=True) == 3
    with pytest.raises(NotFound, match="demo/etl/"):
        await remove(database, "etl", 3, is_folder=True)


@pytest.mark.parametrize(
    ("there", "wanted"), [("a", "a/b"), ("a", "a/b/c"), ("a/b", "a"), ("a/b/c", "a")]
)
async def test_path_is_a_file_or_a_folder(database: Database, there: str, wanted: str) -> None:
    await put(database, there, "one", 1)
    with pytest.raises(PathTaken, match=f"has the file {there}, so {wanted}"):
        await put(database, wanted, "two", 2)
    await remove(database, there, 3)
    await put(database, wanted, "two", 4)


async def test_change_of_another_version_than_expected_is_refused(database: Database) -> None:
    await put(database, "a", "one", 1, expected=0)
    with pytest.raises(ResourceChanged, match="is of version 1 now, the change expects none"):
        await put(database, "a", "two", 2, expected=0)
    await put(database, "a", "two", 2, expected=1)
    with pytest.raises(ResourceChanged, match="is of version 2 now, the change expects version 1"):
        await put(database, "a", "three", 3, expected=1)
    await remove(database, "a", 4)
    with pytest.raises(ResourceChanged, match="no longer exists"):
        await put(database, "a", "three", 5, expected=2)
    assert (await put(database, "a", "three", 6, expected=0))[0].version == 3


async def test_project_has_room_for_so_many_bytes(database: Database) -> None:
    await put(database, "a", "x" * 600, 1)
    with pytest.raises(ProjectFull, match=r"of project demo .* end old unfinished runs"):
        await put(database, "b", "y" * 401, 2)
    await put(database, "b", "y" * 400, 3)


async def test_changes_at_once_make_one_version_each(database: Database) -> None:
    uploads = await asyncio.gather(*(begin(database, "a") for _ in range(8)))
    done = await asyncio.gather(
        *(complete(database, one, f"content {n}", 1) for n, one in enumerate(uploads))
    )
    assert sorted(one.version for one, _ in done) == list(range(1, 9))
    async with database.unit_of_work(read_only=True) as uow:
        versions = await uow.resources.versions("demo", "a")
    assert [one.version for one in versions if one.ended_at is None] == [8]
    for newer, older in pairwise(versions):
        assert older.ended_at == newer.created_at


async def test_uploads_that_never_end_may_go_after_a_day(database: Database) -> None:
    stuck = await begin(database, "a", 0)
    fresh = await begin(database, "b", 7200)
    assert await unneeded(database, 86_401) == [stuck.object]
    async with database.unit_of_work() as uow:
        await uow.resources.forget([stuck.id])
        await uow.commit()
    with pytest.raises(UploadExpired, match="demo/a took too long"):
        await complete(database, stuck, "late", 90_000)
    await complete(database, fresh, "in time", 90_000)
    assert await unneeded(database, 999_999) == []


async def test_versions_go_by_age_but_the_newest_of_a_file_that_there_is(
    database: Database,
) -> None:
    made = [(await put(database, "a", f"content {n}", n))[0] for n in range(1, 6)]
    gone = (await put(database, "b", "content", 1))[0]
    await remove(database, "b", 4)
    assert await unneeded(database, 100, ended=None) == []
    assert await unneeded(database, 100, ended=3.5, newest=1) == [one.object for one in made[:2]]
    assert await unneeded(database, 100, ended=50, newest=3) == [
        *(one.object for one in made[:2]),
        gone.object,
    ]
    assert await unneeded(database, 100, ended=50, newest=5) == [gone.object]


async def test_versions_that_an_open_run_can_use_stay_until_it_ends(database: Database) -> None:
    [run] = await created(database, await published(database))
    start = (run.created_at - at(0)).total_seconds()
    before = (await put(database, "a", "older than what the run uses", start - 100))[0]
    used = (await put(database, "a", "of the run", start - 50))[0]
    after = (await put(database, "a", "newer than what the run uses", start + 60))[0]
    await put(database, "a", "newest", start + 120)
    await change_runs(database, state="PAUSED")
    month = start + 31 * 86_400
    assert await unneeded(database, month, month - 86_400) == [before.object, after.object]
    await change_runs(database, state="SUCCEEDED", finished_at=at(month))
    gone = await unneeded(database, month, month - 86_400)
    assert gone == [before.object, used.object, after.object]


async def test_restarted_run_uses_the_versions_of_its_restart(database: Database) -> None:
    workflow_id = await published(database)
    [run] = await created(database, workflow_id)
    first = (await put(database, "a", "when the run was created", -90))[0]
    second = (await put(database, "a", "when a request was refused", -50))[0]
    third = (await put(database, "a", "when the run was restarted", 60))[0]
    await put(database, "a", "newest", 120)
    await change_runs(database, state="PAUSED")
    for seconds, state in ((0, "REJECTED"), (90, "DONE")):
        resume = NewCommand(
            CommandType.RESUME, 0, f"resume-{seconds}", workflow_id, instance_id=run.id
        )
        async with database.unit_of_work() as uow:
            ((stored, _),) = await uow.commands.add_many([resume], at(seconds))
            await uow.connection.execute(
                update(command).where(command.c.id == stored.id).values(state=state)
            )
            await uow.commit()
        expected = [second, third] if state == "REJECTED" else [first, second]
        gone = await unneeded(database, 900_000, 800_000)
        assert gone == [one.object for one in expected]


@pytest.mark.parametrize("taker", ["etl", EVERY_PROJECT])
async def test_versions_that_an_open_run_of_another_project_can_use_stay(
    database: Database, taker: str
) -> None:
    await created(database, await published(database, definition(project="etl")))
    used = (await put(database, "a", "of the run", -90))[0]
    after = (await put(database, "a", "newer than what the run uses", 60))[0]
    await put(database, "a", "newest", 120)
    await change_runs(database, state="PAUSED")
    for name, expected in (("else", [used, after]), (taker, [after])):
        async with database.unit_of_work() as uow:
            giver = await uow.projects.get("demo")
            await uow.resource_grants.put(giver.id, name, ["a"], at(0))
            await uow.commit()
        gone = await unneeded(database, 900_000, 800_000)
        assert gone == [one.object for one in expected]


async def test_versions_that_an_open_run_has_made_stay_until_it_ends(database: Database) -> None:
    [run] = await created(database, await published(database))
    async with database.unit_of_work() as uow:
        await uow.resources.reserve("demo", {"demo/mine": "a"}, run.id, at(0))
        (mine,) = await uow.resources.reserved("demo", ["demo/mine"], run.id)
        await uow.commit()
    await complete(database, mine, "of the run", 10)
    other = (await put(database, "a", "of a person", 20))[0]
    await put(database, "a", "newest", 30)
    await change_runs(database, state="PAUSED")
    assert await unneeded(database, 900_000, 800_000) == [other.object]
    await change_runs(database, state="FAILED", finished_at=at(60))
    assert await unneeded(database, 900_000, 800_000) == ["demo/mine", other.object]


async def test_row_that_cannot_be_read_is_its_own_matter(database: Database) -> None:
    await put(database, "good", "one", 1)
    await put(database, "bad", "two", 1)
    async with database.unit_of_work() as uow:
        await uow.connection.execute(
            text("UPDATE resource SET path = '../etc/passwd' WHERE path = 'bad'")
        )
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        assert [one.path for one in await uow.resources.list("demo")] == ["good"]
        with pytest.raises(UnreadableRow, match="not a path within a project"):
            await uow.resources.get("demo", "../etc/passwd")
        with pytest.raises(UnreadableRow):
            await uow.resources.files_at("demo", ["../etc/passwd"], at(2))


async def test_uploads_of_a_run_stay_until_it_has_been_over_for_a_day(database: Database) -> None:
    [run] = await created(database, await published(database))
    async with database.unit_of_work() as uow:
        for _ in range(2):  # once, however often it is said
            await uow.resources.reserve("demo", {"demo/mine": "a"}, run.id, at(0))
        await uow.resources.reserve("demo", {"demo/purged": "b"}, run.id + 1_000, at(0))
        await uow.commit()
    assert await unneeded(database, 900_000) == ["demo/purged"]
    async with database.unit_of_work() as uow:
        (mine,) = await uow.resources.reserved("demo", ["demo/mine", "demo/purged"], run.id)
        assert (mine.path, mine.object) == ("a", "demo/mine")
        await uow.connection.execute(
            update(workflow_instance)
            .where(workflow_instance.c.id == run.id)
            .values(state="FAILED", finished_at=at(900_000))
        )
        await uow.commit()
    assert await unneeded(database, 900_001 + 86_400) == ["demo/mine", "demo/purged"]
    assert await unneeded(database, 900_000 + 86_400) == ["demo/purged"]
    done, is_new = await complete(database, mine, "one", 5)
    assert (done.instance_id, is_new) == (run.id, True)
    async with database.unit_of_work(read_only=True) as uow:
        assert await uow.resources.reserved("demo", ["demo/mine"], run.id) == []
        assert await uow.resources.made_by(run.id, at(4), 10) == [done]
        assert await uow.resources.made_by(run.id, at(5), 10) == []
        assert await uow.resources.made_by(run.id + 1_000, at(4), 10) == []


async def test_no_two_versions_share_an_object(database: Database) -> None:
    async with database.unit_of_work() as uow:
        await uow.resources.begin("demo", "a", "demo/same", at(0))
        with pytest.raises(IntegrityViolated):
            await uow.resources.begin("demo", "b", "demo/same", at(0))
