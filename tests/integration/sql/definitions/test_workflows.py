"""Projects, workflows and their versions."""

import asyncio

import pytest

from shoal.core.runs.events import Begun, StopRequested
from shoal.core.runs.filters import WorkflowFilter
from shoal.core.runs.states import WorkflowState
from shoal.sql import Database
from shoal.sql.errors import NotFound, OpenInstances
from tests.integration.sql.given import LATER, NOW, created, definition, published, stored


async def test_first_publication_creates_project_and_workflow(database: Database) -> None:
    spec = definition(
        description="nightly", parameters={"day": "2026-01-01"}, timezone="Asia/Tokyo"
    )
    async with database.unit_of_work() as uow:
        outcome = await uow.workflows.publish(spec, NOW)
        await uow.commit()
    assert outcome.created
    assert (outcome.version.version, outcome.version.spec) == (1, spec)
    async with database.unit_of_work(read_only=True) as uow:
        assert (await uow.projects.get("demo")).workflows == 1
        workflow = await uow.workflows.get("demo", "flow")
        assert (workflow.version, workflow.tasks) == (1, 2)
        assert workflow.texts == {"description": "nightly", "owner": ""}
        assert (workflow.created_at, workflow.updated_at) == (NOW, NOW)
        assert workflow.digest == spec.digest()
        assert await uow.workflows.version(workflow.id) == outcome.version
        assert await uow.workflows.version_by_name("demo", "flow", 1) == outcome.version


async def test_equal_definition_makes_no_new_version(database: Database) -> None:
    await published(database)
    async with database.unit_of_work() as uow:
        again = await uow.workflows.publish(definition(), LATER)
        await uow.commit()
    assert (again.created, again.version.version, again.version.created_at) == (False, 1, NOW)


async def test_each_change_is_a_version_and_old_ones_stay_readable(database: Database) -> None:
    specs = [definition(), definition(description="changed"), definition()]
    for spec in specs:
        workflow_id = await published(database, spec)
    async with database.unit_of_work(read_only=True) as uow:
        for number, spec in enumerate(specs, 1):
            assert (await uow.workflows.version(workflow_id, number)).spec == spec
        assert (await uow.workflows.version(workflow_id)).version == 3
        history = await uow.workflows.versions("demo", "flow")
        assert [(one.version, one.digest) for one in history] == [
            (3, specs[2].digest()),
            (2, specs[1].digest()),
            (1, specs[0].digest()),
        ]


async def test_racing_publishers_never_make_two_equal_versions(database: Database) -> None:
    barrier = asyncio.Barrier(6)

    async def publish(description: str) -> tuple[int, bool]:
        await barrier.wait()
        async with database.unit_of_work() as uow:
            outcome = await uow.workflows.publish(definition(description=description), NOW)
            await uow.commit()
        return outcome.version.version, outcome.created

    outcomes = await asyncio.gather(*(publish("same") for _ in range(6)))
    assert sorted(outcomes) == [(1, False)] * 5 + [(1, True)]
    outcomes = await asyncio.gather(*(publish(f"mine {i}") for i in range(6)))
    assert sorted(outcomes) == [(number, True) for number in range(2, 8)]


async def test_version_that_was_rolled_back_is_forgotten(database: Database) -> None:
    workflow_id = await published(database)
    async with database.unit_of_work() as uow:
        await uow.workflows.publish(definition(description="never"), NOW)
        assert (await uow.workflows.version(workflow_id)).spec.description == "never"
    await published(database, definition(description="at last"))
    async with database.unit_of_work(read_only=True) as uow:
        version = await uow.workflows.version(workflow_id)
        assert (version.version, version.spec.description) == (2, "at last")


async def test_list_is_in_pages_by_project_and_name(database: Database) -> None:
    for project, name in (("b", "y"), ("a", "x"), ("b", "x"), ("a", "z")):
        await published(database, definition(name, project=project))
    async with database.unit_of_work(read_only=True) as uow:
        first = await uow.workflow_list.page(limit=3)
        assert [(w.project, w.name) for w in first] == [("a", "x"), ("a", "z"), ("b", "x")]
        rest = await uow.workflow_list.page(after=("b", "x"))
        assert [(w.project, w.name) for w in rest] == [("b", "y")]
        only_a = await uow.workflow_list.page(WorkflowFilter(project="a"))
        assert [(w.project, w.name) for w in only_a] == [("a", "x"), ("a", "z")]


@pytest.mark.parametrize(
    ("search", "found"),
    [("SALES", ["sales_daily"]), ("euro", ["sales_daily"]), ("%", []), ("_", ["sales_daily"])],
)
async def test_search_looks_into_name_and_description(
    database: Database, search: str, found: list[str]
) -> None:
    await published(database, definition("sales_daily", description="In Euro"))
    await published(database, definition("other"))
    async with database.unit_of_work(read_only=True) as uow:
        assert [
            w.name for w in await uow.workflow_list.page(WorkflowFilter(search=search))
        ] == found


async def test_workflow_with_unfinished_instances_cannot_be_deleted(database: Database) -> None:
    workflow_id = await published(database)
    (run,) = await created(database, workflow_id)
    async with database.unit_of_work() as uow:
        with pytest.raises(OpenInstances, match="demo/flow has 1 instances"):
            await uow.lifecycle.delete("demo", "flow")
    await stored(database, run, Begun(NOW))
    await stored(database, run, StopRequested(LATER))
    assert run.state is WorkflowState.STOPPED
    async with database.unit_of_work() as uow:
        await uow.lifecycle.delete("demo", "flow")
        await uow.commit()


async def test_deleted_workflow_is_gone_but_its_history_is_not(database: Database) -> None:
    schedules = [{"cron": "0 6 * * *"}]
    workflow_id = await published(database, definition(schedules=schedules))
    async with database.unit_of_work() as uow:
        await uow.lifecycle.delete("demo", "flow", LATER)
        await uow.commit()
    async with database.unit_of_work(read_only=True) as uow:
        for ask in (
            uow.workflows.get("demo", "flow"),
            uow.workflows.version(workflow_id),
            uow.workflows.version_by_name("demo", "flow", 1),
            uow.workflows.versions("demo", "flow"),
        ):
            with pytest.raises(NotFound, match="workflow"):
                await ask
        assert await uow.workflow_list.page() == []
        assert await uow.schedules.list() == []
        assert (await uow.projects.get("demo")).workflows == 0
        assert (await uow.workflows.version(workflow_id, 1)).name == "flow"


async def test_deleted_workflow_published_anew_goes_on_with_its_versions(
    database: Database,
) -> None:
    spec = definition(schedules=[{"cron": "0 6 * * *"}])
    workflow_id = await published(database, spec)
    async with database.unit_of_work() as uow:
        await uow.lifecycle.delete("demo", "flow")
        outcome = await uow.workflows.publish(spec, LATER)
        await uow.commit()
    assert (outcome.created, outcome.version.version) == (True, 2)
    assert outcome.version.workflow_id == workflow_id
    async with database.unit_of_work(read_only=True) as uow:
        assert len(await uow.schedules.of_workflow("demo", "flow")) == 1


async def test_projects_are_listed_by_name_with_their_descriptions(database: Database) -> None:
    async with database.unit_of_work() as uow:
        for name in ("c", "a", "b"):
            await uow.projects.ensure(name, NOW)
        first = await uow.projects.ensure("a", LATER)
        await uow.projects.set_description("b", "both")
        await uow.commit()
    assert first.created_at == NOW
    async with database.unit_of_work(read_only=True) as uow:
        assert [p.name for p in await uow.projects.list(limit=2)] == ["a", "b"]
        assert [p.name for p in await uow.projects.list(after="b")] == ["c"]
        assert (await uow.projects.get("b")).description == "both"
    async with database.unit_of_work() as uow:
        with pytest.raises(NotFound, match="project nope"):
            await uow.projects.get("nope")
        with pytest.raises(NotFound, match="project nope"):
            await uow.projects.set_description("nope", "")
