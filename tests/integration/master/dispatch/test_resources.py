"""Which versions of resources a payload holds, what fails the task, and what is swept away."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.runs.commands import CommandType
from shoal.core.runs.run import Attempt, Run, WorkflowPlan
from shoal.core.runs.states import WorkflowState
from shoal.master.dispatch.payloads import PayloadMaker
from shoal.master.dispatch.resources import (
    BadResourceName,
    NotSharedResource,
    TooManyResources,
    UnknownResource,
)
from shoal.master.settings import UpkeepTimes
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.storage import ObjectMissing, Storage
from shoal.runtime.vault import Vault
from shoal.sql import Database
from shoal.sql.errors import UnreadableRow
from tests.integration.master.conftest import Bench
from tests.integration.master.dispatch.payloads import NO_NAME
from tests.integration.master.dispatch.stored_files import put, rows
from tests.integration.master.statements import but_restrictions, noted_reads
from tests.support.waiting import DEADLINE_S
from tests.unit.core.decide.driving import spec

pytestmark = pytest.mark.usefixtures("each_query_once")

NO_STORES = Resolver(SecretStores({}))
START = datetime(2026, 11, 21, 6, tzinfo=UTC)
BEFORE, AFTER = START - timedelta(seconds=1), START + timedelta(seconds=1)


async def payload(
    database: Database, params: dict[str, Any] | None = None, **task: Any
) -> pb.Payload:
    params = {"script": "true"} if params is None else params
    definition = spec({"a": {"type": "SHELL", "params": params, **task}})
    attempt = Attempt("a", 1, id=7)
    run = Run(
        3, WorkflowPlan.of(definition), WorkflowState.RUNNING, 5, {"a": attempt}, START, START
    )
    vault = Vault(Path("/nowhere"))
    maker = PayloadMaker(database, vault, lambda _: 99, "one", NO_NAME, lambda: START, NO_STORES)
    return await maker.make(run, attempt)


async def versions(database: Database, *resources: str, **params: Any) -> dict[str, int]:
    found = await payload(database, params or None, resources=resources)
    return {one.path: one.version for one in found.resources}


async def test_task_gets_what_was_there_when_its_run_began(database: Database) -> None:
    name = await put(database, "etl/a.py", "one", BEFORE)
    await put(database, "etl/a.py", "two", AFTER)
    await put(database, "etl/b.py", "new", AFTER)
    await put(database, "other", "other", BEFORE)
    found = await payload(database, {"file": "etl/a.py"}, resources=["etl/", "other"])
    assert [(one.path, one.version) for one in found.resources] == [("etl/a.py", 1), ("other", 1)]
    assert found.resources[0].size == 3
    assert found.resources[0].sha256 == hashlib.sha256(b"one").hexdigest()
    assert found.resources[0].object == name
    assert await versions(database, "etl/a.py@2") == {"etl/a.py": 2}
    assert await versions(database, "etl/a.py@1", "etl/a.py") == {"etl/a.py": 1}


async def test_names_are_rendered_with_the_parameters_of_the_task(database: Database) -> None:
    await put(database, "day/20261121.csv", "one", BEFORE)
    found = await payload(
        database,
        {"file": "${folder}/$[yyyyMMdd].csv"},
        parameters={"folder": "day"},
        resources=["${folder}/"],
    )
    assert [one.path for one in found.resources] == ["day/20261121.csv"]


async def test_tasks_that_name_none_ask_the_database_for_nothing(database: Database) -> None:
    await put(database, "a", "one", BEFORE)
    statements = await noted_reads(database)
    assert not (await payload(database)).resources
    assert but_restrictions(statements) == []


@pytest.mark.parametrize(
    ("named", "error", "words"),
    [
        (
            "etl/b.py",
            UnknownResource,
            r"resources\[0\]: .* had no resource etl/b\.py at 2026-11-21",
        ),
        ("etl/aa.py", UnknownResource, "did you mean 'etl/a.py'"),
        ("etl/aa.py", UnknownResource, "shoal resource put FILE etl/aa.py --project default` and"),
        ("late", UnknownResource, "when the run began or last went on"),
        ("gone", UnknownResource, "no resource gone"),
        ("etl/a.py@9", UnknownResource, "no resource etl/a.py@9"),
        ("empty/", UnknownResource, "no file below empty/"),
        ("${x}", BadResourceName, r"resources\[0\]: '\.\./x' is not a path within a project"),
        ("many/", TooManyResources, "names more than 2 files"),
    ],
)
async def test_what_is_not_there_says_what_to_do(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    named: str,
    error: type[Exception],
    words: str,
) -> None:
    monkeypatch.setattr("shoal.master.dispatch.resources.MOST_FILES", 2)
    await put(database, "etl/a.py", "one", BEFORE)
    await put(database, "late", "one", AFTER)
    await put(database, "gone", "one", BEFORE - timedelta(seconds=9))
    for number in range(3):
        await put(database, f"many/{number}", "one", BEFORE)
    async with database.unit_of_work() as uow:
        await uow.resources.delete("default", "gone", BEFORE)
        await uow.commit()
    with pytest.raises(error, match=words):
        await payload(database, resources=[named], parameters={"x": "../x"})


async def test_one_path_in_two_versions_is_refused(database: Database) -> None:
    await put(database, "a", "one", BEFORE - timedelta(seconds=9))
    await put(database, "a", "two", BEFORE)
    with pytest.raises(BadResourceName, match="names a as @2 and @1"):
        await versions(database, "a", "a@1")


async def test_row_that_cannot_be_read_fails_who_names_it(database: Database) -> None:
    await put(database, "bad", "one", BEFORE)
    await put(database, "good", "one", BEFORE)
    async with database.unit_of_work() as uow:
        await uow.connection.execute(text("UPDATE resource SET size = -1 WHERE path = 'bad'"))
        await uow.commit()
    assert await versions(database, "good") == {"good": 1}
    with pytest.raises(UnreadableRow):
        await versions(database, "bad")


async def test_recovered_run_gets_the_repaired_file_and_a_retry_does_not(bench: Bench) -> None:
    await put(bench.database, "job.sh", "false", datetime.now(UTC))
    workflow = await bench.publish({"a": {"params": {"file": "job.sh"}, "retries": 1}})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        seen = []
        for number in range(3):
            if number == 2:
                await bench.ended(instance.id)
                await bench.command(CommandType.RECOVER, workflow, "recover", instance)
            claims = await worker.claim(1)
            (verdict,) = await worker.fetch(claims)
            seen += [one.version for one in verdict.payload.resources]
            if number == 0:
                await put(bench.database, "job.sh", "true", datetime.now(UTC))
            end = pb.SUCCEEDED if number == 2 else pb.FAILED
            await worker.report(claims[0], end)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
    assert seen == [1, 1, 2]


async def test_task_whose_resource_is_not_there_fails_with_the_reason(bench: Bench) -> None:
    workflow = await bench.publish({"a": {"params": {"file": "job.sh"}, "retries": 3}})
    async with bench.master():
        instance = await bench.start(workflow)
        worker = await bench.worker("w")
        claims = await worker.claim(1)
        (verdict,) = await worker.fetch(claims)
        assert not verdict.HasField("payload")
        assert await bench.ended(instance.id) is WorkflowState.FAILED
    (task,) = await bench.tasks(instance.id)
    assert "params.file: project default had no resource job.sh" in (task.reason or "")


async def test_what_is_not_needed_any_more_is_swept_with_its_objects(bench: Bench) -> None:
    storage = Storage.of(bench.cluster)
    now = datetime.now(UTC)
    ages = [timedelta(days=days) for days in (60, 50, 40, 1)]
    old = [
        await put(bench.database, "a", f"content {number}", now - age, storage)
        for number, age in enumerate(ages)
    ]
    async with bench.database.unit_of_work() as uow:
        stuck = Storage.new_name("default", await uow.cluster.uid())
        await uow.resources.begin("default", "b", stuck, now - timedelta(days=2))
        await uow.resources.begin("default", "c", "../../poison", now - timedelta(days=2))
        await uow.commit()
    async with bench.master(
        upkeep=UpkeepTimes(resources=0.5), keep_deleted_resources_days=35, keep_resource_versions=1
    ):
        async with asyncio.timeout(DEADLINE_S):
            while await rows(bench.database) != 2:
                await asyncio.sleep(0.05)
    # The third was replaced a day ago, the fourth is the newest.
    for name in (*old[:2], stuck):
        with pytest.raises(ObjectMissing), storage.reading(name):
            pass
    for name in old[2:]:
        with storage.reading(name) as file:
            assert file.read(100).startswith(b"content")


async def share(
    database: Database, *paths: str, giver: str = "lake", taker: str = "default"
) -> None:
    async with database.unit_of_work() as uow:
        home = await uow.projects.ensure(giver, START)
        if paths:
            await uow.resource_grants.put(home.id, taker, paths, START)
        else:
            await uow.resource_grants.remove(home.id, taker)
        await uow.commit()


async def test_files_of_another_project_come_as_far_as_it_shares_them(database: Database) -> None:
    wanted = [await put(database, "lib/a.sh", "their a", BEFORE, project="lake")]
    wanted.append(await put(database, "lib/b.sh", "their b", BEFORE, project="lake"))
    await put(database, "secret.sh", "theirs alone", BEFORE, project="lake")
    await put(database, "lib/b.sh", "ours", BEFORE)
    await share(database, "lib/")
    found = await payload(database, resources=["lake:lib/"])
    assert [(one.path, one.object) for one in found.resources] == [
        ("lib/a.sh", wanted[0]),
        ("lib/b.sh", wanted[1]),
    ]
    one = await payload(database, {"file": "lake:lib/a.sh@1"}, resources=["lib/b.sh"])
    assert [file.path for file in one.resources] == ["lib/a.sh", "lib/b.sh"]
    both = r"names lib/b.sh of the projects (default and lake|lake and default)"
    with pytest.raises(BadResourceName, match=both):
        await payload(database, {"file": "lake:lib/b.sh"}, resources=["lib/b.sh"])
    for name in ("lake:secret.sh", "lake:none.sh", "lake:secret.sh@1", "nowhere:secret.sh"):
        with pytest.raises(NotSharedResource) as refused:
            await payload(database, {"file": name})
        project, _, path = name.partition(":")
        assert str(refused.value) == (
            f"params.file: there is no resource {name} that project default may use; if there is "
            f"one, an owner of {project} can share it: shoal grant files default "
            f"{path.partition('@')[0]} --project {project}"
        )
    await share(database, "*", taker="*")
    await payload(database, {"file": "lake:secret.sh"})
    await share(database, taker="*")
    await share(database)
    with pytest.raises(NotSharedResource):
        await payload(database, resources=["lake:lib/"])


async def test_what_a_project_shares_and_nobody_can_read_is_not_shared(database: Database) -> None:
    await put(database, "a.sh", "a", BEFORE, project="lake")
    await share(database, "*")
    async with database.unit_of_work() as uow:
        await uow.connection.execute(text("UPDATE resource_grant SET paths = 'junk'"), {})
        await uow.commit()
    with pytest.raises(NotSharedResource):
        await payload(database, {"file": "lake:a.sh"})
